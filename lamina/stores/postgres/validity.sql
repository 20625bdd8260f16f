-- name: lock_subjects
-- In one order.
SELECT pg_advisory_xact_lock(hashtextextended(told.id::text, 29))
FROM (
    SELECT DISTINCT wanted.id FROM unnest(%(ids)s::uuid[]) AS wanted (id) ORDER BY wanted.id
    OFFSET 0
) told

-- name: find_claims
-- The evidence of the edges of these subjects that state or end something, and of those that a caller replaced. An edge
-- that takes the place of another is stated again at that moment, by those of its owners whose the other was: the
-- evidence of a source keeps its first time.
SELECT e.from_id, e.id AS edge, e.type AS relation, e.to_id AS value, told.stated_at, v.confidence,
       v.user_id AS owner, NULL::uuid AS replaced_by
FROM edges e
JOIN edge_evidence v ON v.edge_id = e.id
CROSS JOIN LATERAL (
    SELECT v.seen_at AS stated_at
    UNION ALL
    SELECT r.replaced_at FROM edge_replacements r
    WHERE r.replaced_by = e.id AND r.replaced_at > v.seen_at
      AND EXISTS (SELECT FROM edge_evidence o
                  WHERE o.edge_id = r.edge_id AND o.user_id IS NOT DISTINCT FROM v.user_id)
) told
WHERE e.from_id = ANY(%(ids)s)
  AND (e.type = ANY(%(relations)s) OR e.type LIKE %(own_values)s OR e.valid_from IS NOT NULL
       OR EXISTS (SELECT FROM edge_replacements r WHERE r.edge_id = e.id))
UNION ALL
SELECT e.from_id, e.id, e.type, e.to_id, r.replaced_at, 1, NULL, r.replaced_by
FROM edges e
JOIN edge_replacements r ON r.edge_id = e.id
WHERE e.from_id = ANY(%(ids)s)

-- name: put_validities
UPDATE edges e
SET valid_from = told.valid_from, valid_to = told.valid_to, replaced_by = told.replaced_by,
    held_before = told.held_before
FROM unnest(%(ids)s::uuid[], %(begins)s::timestamptz[], %(ends)s::timestamptz[], %(replacing)s::uuid[],
            %(before)s::text[]::tstzmultirange[])
     AS told (id, valid_from, valid_to, replaced_by, held_before)
WHERE e.id = told.id
  AND (e.valid_from, e.valid_to, e.replaced_by, e.held_before)
      IS DISTINCT FROM (told.valid_from, told.valid_to, told.replaced_by, told.held_before)

-- name: find_stated
-- Those of these entities of which something is stated that can end, or that a caller replaced.
SELECT DISTINCT from_id FROM edges
WHERE from_id = ANY(%(ids)s)
  AND (type = ANY(%(relations)s) OR type LIKE %(own_values)s OR valid_from IS NOT NULL)

-- name: read_statements
-- Whose statements an edge rests on, and when the last one was made.
SELECT array_agg(DISTINCT user_id) FILTER (WHERE user_id IS NOT NULL) AS users, bool_or(user_id IS NULL) AS is_shared,
       max(seen_at) AS latest
FROM edge_evidence WHERE edge_id = %(id)s
HAVING count(*) > 0

-- name: find_replaceable
-- The new edge, and those of the others in its namespace; for one user, those that rest on this user's evidence alone.
SELECT e.id, e.from_id, e.valid_to,
       coalesce(e.valid_from, (SELECT min(v.seen_at) FROM edge_evidence v WHERE v.edge_id = e.id)) AS valid_from
FROM edges e
WHERE e.id = %(new)s
   OR e.id = ANY(%(old)s)
  AND e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL
       OR NOT EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id AND v.user_id IS DISTINCT FROM %(user_id)s))

-- name: begin_again
-- The new edge is not ended at the moment of its statement, nor from then on by one whose place it takes.
DELETE FROM edge_replacements
WHERE edge_id = %(new)s AND (replaced_at = %(at)s OR replaced_by = ANY(%(old)s) AND replaced_at >= %(at)s)

-- name: replace_edges
INSERT INTO edge_replacements (edge_id, replaced_by, replaced_at)
SELECT id, %(new)s, %(at)s FROM unnest(%(old)s::uuid[]) AS told (id) ORDER BY id
ON CONFLICT (edge_id, replaced_by) DO UPDATE SET replaced_at = excluded.replaced_at

-- name: find_statement
-- What a source stated before, at another moment than now, with all times in which the edge held, the last one last.
SELECT e.from_id, e.type, v.seen_at,
       ARRAY(SELECT lower(h) FROM unnest(e.held_before) AS h) || coalesce(e.valid_from, e.first_seen_at) AS begins,
       ARRAY(SELECT upper(h) FROM unnest(e.held_before) AS h) || e.valid_to AS ends
FROM edges e
JOIN edge_evidence v ON v.edge_id = e.id
WHERE e.id = %(id)s AND v.memory_id IS NULL AND v.user_id IS NOT DISTINCT FROM %(user_id)s
  AND sha256_of(v.source) = sha256_of(%(source)s) AND v.seen_at <> %(at)s

-- name: move_statement
WITH moved AS (
    UPDATE edge_evidence SET seen_at = %(at)s
    WHERE edge_id = %(id)s AND memory_id IS NULL AND user_id IS NOT DISTINCT FROM %(user_id)s
      AND sha256_of(source) = sha256_of(%(source)s)
)
UPDATE edges e
SET first_seen_at = least(%(at)s, (SELECT min(v.seen_at) FROM edge_evidence v
                                   WHERE v.edge_id = e.id
                                     AND NOT (v.memory_id IS NULL AND v.user_id IS NOT DISTINCT FROM %(user_id)s
                                              AND sha256_of(v.source) = sha256_of(%(source)s))))
WHERE e.id = %(id)s

-- name: find_successor
-- The edge that holds at a moment in the place of one that ended before it.
WITH RECURSIVE later AS (
    SELECT e.replaced_by AS id, ARRAY[e.id] AS before FROM edges e WHERE e.id = %(id)s
    UNION ALL
    SELECT e.replaced_by, later.before || e.id
    FROM later JOIN edges e ON e.id = later.id
    WHERE e.valid_to <= %(at)s AND e.id <> ALL (later.before)
)
SELECT e.id, e.from_id, e.type
FROM later JOIN edges e ON e.id = later.id
WHERE e.valid_to IS NULL OR e.valid_to > %(at)s
