-- name: hold_entry
-- Of two that bring it back, the second waits, and finds none.
SELECT workspace, namespace, user_id, kind FROM trash
WHERE tenant = %(tenant)s AND id = %(id)s AND kind IN ('entity', 'fact')
FOR UPDATE

-- name: hold_rows
-- What memories say: one that is deleted at this moment is waited for, and its rows are not there afterwards; a deletion
-- that begins now waits, and then finds the live rows.
WITH evidence AS (
    SELECT 1 FROM discarded_evidence WHERE tenant = %(tenant)s AND entry = %(id)s FOR UPDATE
), mentions AS (
    SELECT 1 FROM discarded_mentions WHERE tenant = %(tenant)s AND entry = %(id)s FOR UPDATE
)
SELECT (SELECT count(*) FROM evidence) + (SELECT count(*) FROM mentions) AS held

-- name: revive_entities
-- Those that the namespace lacks, under the ids that they had, if they have an edge or are what was deleted. One that has
-- the name meanwhile is that entity, and takes on what was stated of it. Two deletions may have kept two of one name.
INSERT INTO entities AS e (id, tenant, workspace, namespace, key, name, type, aliases, confidence, is_asserted,
                           generation, embedding, first_seen_at, last_seen_at, standing)
SELECT DISTINCT ON (n.key COLLATE "C") n.id, n.tenant, %(workspace)s, %(namespace)s, n.key, n.name, n.type, n.aliases,
       n.confidence, n.is_asserted, %(generation)s, v.embedding, n.first_seen_at, n.last_seen_at, n.standing
FROM discarded_entities n
JOIN unnest(%(names)s::text[], %(embeddings)b::vector[]) AS v (name, embedding) ON v.name = n.name
WHERE n.tenant = %(tenant)s AND n.entry = %(id)s
  AND NOT EXISTS (SELECT FROM entities o WHERE o.id = n.id)
ORDER BY n.key COLLATE "C", n.last_seen_at DESC, n.id
ON CONFLICT (tenant, workspace, namespace, sha256_of(key)) DO UPDATE
SET type = CASE WHEN e.type = 'thing' THEN excluded.type ELSE e.type END,
    aliases = ARRAY(SELECT DISTINCT unnest(e.aliases || excluded.aliases) ORDER BY 1),
    confidence = greatest(e.confidence, excluded.confidence),
    is_asserted = e.is_asserted OR excluded.is_asserted,
    first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(e.last_seen_at, excluded.last_seen_at),
    standing = greatest(e.standing, excluded.standing)

-- name: lock_ends
-- The entities of an entry as they are in the graph now, locked in the order of their writers.
SELECT n.id AS former, e.id
FROM discarded_entities n
JOIN entities e ON e.tenant = n.tenant AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
               AND sha256_of(e.key) = sha256_of(n.key)
WHERE n.tenant = %(tenant)s AND n.entry = %(id)s
ORDER BY e.key COLLATE "C", e.id
FOR UPDATE OF e

-- name: count_entities
SELECT count(*) AS entities FROM discarded_entities WHERE tenant = %(tenant)s AND entry = %(id)s

-- name: revive_names
INSERT INTO entity_names (tenant, workspace, namespace, key, entity_id)
SELECT n.tenant, %(workspace)s, %(namespace)s, name.key, now.id
FROM unnest(%(former)s::uuid[], %(ids)s::uuid[]) AS now (former, id)
JOIN discarded_entities n ON n.tenant = %(tenant)s AND n.entry = %(id)s AND n.id = now.former
CROSS JOIN LATERAL unnest(n.names) AS name (key)
ORDER BY name.key COLLATE "C", now.id
ON CONFLICT DO NOTHING

-- name: revive_witnesses
INSERT INTO entity_witnesses (entity_id, witness)
SELECT now.id, told.witness
FROM unnest(%(former)s::uuid[], %(ids)s::uuid[]) AS now (former, id)
JOIN discarded_entities n ON n.tenant = %(tenant)s AND n.entry = %(id)s AND n.id = now.former
CROSS JOIN LATERAL unnest(n.witnesses) AS told (witness)
ORDER BY now.id, told.witness
ON CONFLICT DO NOTHING

-- name: find_subjects
-- Of edges that come back, and that can end or end others; and of those others.
SELECT DISTINCT subject.id
FROM discarded_edges d
JOIN unnest(%(former)s::uuid[], %(ids)s::uuid[]) AS now (former, id) ON now.former = d.from_id
CROSS JOIN LATERAL (
    SELECT now.id
    UNION ALL
    SELECT e.from_id FROM jsonb_array_elements(d.replacements) AS pair
    JOIN edges e ON e.id IN ((pair ->> 0)::uuid, (pair ->> 1)::uuid)
) subject
WHERE d.tenant = %(tenant)s AND d.entry = %(id)s
  AND (d.type = ANY(%(relations)s) OR d.type LIKE %(own_values)s OR d.replacements <> '[]')

-- name: revive_edges
INSERT INTO edges AS e (id, tenant, workspace, namespace, from_id, to_id, type, strength, confidence, first_seen_at,
                        last_seen_at, standing, recorded_at)
SELECT d.id, d.tenant, %(workspace)s, %(namespace)s, s.id, o.id, d.type, d.strength, d.confidence, d.first_seen_at,
       d.last_seen_at, d.standing, d.recorded_at
FROM discarded_edges d
JOIN unnest(%(former)s::uuid[], %(ids)s::uuid[]) AS s (former, id) ON s.former = d.from_id
JOIN unnest(%(former)s::uuid[], %(ids)s::uuid[]) AS o (former, id) ON o.former = d.to_id
WHERE d.tenant = %(tenant)s AND d.entry = %(id)s AND s.id <> o.id
ORDER BY s.id, d.type, o.id
ON CONFLICT (from_id, to_id, type) DO UPDATE
SET first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(e.last_seen_at, excluded.last_seen_at),
    standing = greatest(e.standing, excluded.standing)

-- name: find_revived_edges
SELECT d.id AS former, e.id
FROM discarded_edges d
JOIN unnest(%(former)s::uuid[], %(ids)s::uuid[]) AS s (former, id) ON s.former = d.from_id
JOIN unnest(%(former)s::uuid[], %(ids)s::uuid[]) AS o (former, id) ON o.former = d.to_id
JOIN edges e ON e.from_id = s.id AND e.to_id = o.id AND e.type = d.type
WHERE d.tenant = %(tenant)s AND d.entry = %(id)s
ORDER BY e.id

-- name: revive_evidence
INSERT INTO edge_evidence (edge_id, source, witness, memory_id, user_id, strength, confidence, seen_at)
SELECT now.id, v.source, v.witness, v.memory_id, v.user_id, v.strength, v.confidence, v.seen_at
FROM discarded_evidence v
JOIN unnest(%(former_edges)s::uuid[], %(edges)s::uuid[]) AS now (former, id) ON now.former = v.edge_id
WHERE v.tenant = %(tenant)s AND v.entry = %(id)s
ORDER BY now.id
ON CONFLICT DO NOTHING

-- name: revive_replacements
INSERT INTO edge_replacements (edge_id, replaced_by, replaced_at)
SELECT DISTINCT ON (old.id, new.id) old.id, new.id, (pair ->> 2)::timestamptz
FROM discarded_edges d
CROSS JOIN LATERAL jsonb_array_elements(d.replacements) AS pair
LEFT JOIN unnest(%(former_edges)s::uuid[], %(edges)s::uuid[]) AS a (former, id) ON a.former = (pair ->> 0)::uuid
LEFT JOIN unnest(%(former_edges)s::uuid[], %(edges)s::uuid[]) AS b (former, id) ON b.former = (pair ->> 1)::uuid
JOIN edges old ON old.id = coalesce(a.id, (pair ->> 0)::uuid) AND old.tenant = %(tenant)s
JOIN edges new ON new.id = coalesce(b.id, (pair ->> 1)::uuid) AND new.tenant = %(tenant)s
WHERE d.tenant = %(tenant)s AND d.entry = %(id)s AND old.id <> new.id
ORDER BY old.id, new.id
ON CONFLICT DO NOTHING

-- name: revive_mentions
INSERT INTO memory_links (from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at)
SELECT m.from_id, %(entity)s, m.kind, m.from_tier, m.tenant, %(workspace)s, %(namespace)s, m.user_id, m.source,
       m.strength, m.seen_at
FROM discarded_mentions m
WHERE m.tenant = %(tenant)s AND m.entry = %(id)s
ORDER BY m.from_id, m.kind
ON CONFLICT DO NOTHING
RETURNING from_id

-- name: find_node
SELECT id FROM entities WHERE tenant = %(tenant)s AND id = %(id)s
UNION ALL
SELECT id FROM edges WHERE tenant = %(tenant)s AND id = %(id)s
