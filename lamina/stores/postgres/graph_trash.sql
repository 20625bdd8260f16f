-- name: discard_entity
-- Who could know of it may still read its name: everybody, or the only user whose memories mention it. One that only
-- private memories of several users mention is nobody's, and has no title.
INSERT INTO trash (tenant, id, workspace, namespace, user_id, kind, content_hash, deleted_at, title)
SELECT n.tenant, n.id, n.workspace, n.namespace, told.owner, 'entity', sha256_of(n.key), %(now)s,
       CASE WHEN told.is_shared OR told.owner IS NOT NULL THEN left(n.name, %(title_chars)s) END
FROM entities n
CROSS JOIN LATERAL (
    SELECT n.is_asserted OR coalesce(bool_or(user_id IS NULL), false) AS is_shared,
           CASE WHEN NOT n.is_asserted AND bool_and(user_id IS NOT NULL) AND min(user_id) = max(user_id)
                THEN min(user_id) END AS owner
    FROM (
        SELECT l.user_id FROM memory_links l WHERE l.to_id = n.id
        UNION ALL
        SELECT v.user_id FROM edges e JOIN edge_evidence v ON v.edge_id = e.id
        WHERE (e.from_id = n.id OR e.to_id = n.id)
          AND NOT (v.source = 'job:consolidation' AND v.memory_id IS NULL AND v.user_id IS NULL)
    ) teller
) told
WHERE n.tenant = %(tenant)s AND n.id = %(id)s
ON CONFLICT (tenant, id) DO UPDATE SET deleted_at = excluded.deleted_at, title = excluded.title, user_id = excluded.user_id
RETURNING id

-- name: discard_fact
-- As an entity is. One that a job alone inferred is not kept: the job infers it again.
INSERT INTO trash (tenant, id, workspace, namespace, user_id, kind, content_hash, deleted_at, title)
SELECT e.tenant, e.id, e.workspace, e.namespace, told.owner, 'fact', sha256_of(ARRAY[s.key, e.type, o.key]), %(now)s,
       CASE WHEN told.is_shared OR told.owner IS NOT NULL
            THEN left(s.name || ' ' || e.type || ' ' || o.name, %(title_chars)s) END
FROM edges e
JOIN entities s ON s.id = e.from_id
JOIN entities o ON o.id = e.to_id
CROSS JOIN LATERAL (
    SELECT bool_or(v.user_id IS NULL) AS is_shared,
           CASE WHEN bool_and(v.user_id IS NOT NULL) AND min(v.user_id) = max(v.user_id) THEN min(v.user_id) END AS owner
    FROM edge_evidence v
    WHERE v.edge_id = e.id AND NOT (v.source = 'job:consolidation' AND v.memory_id IS NULL AND v.user_id IS NULL)
) told
WHERE e.tenant = %(tenant)s AND e.id = %(id)s AND told.is_shared IS NOT NULL
ON CONFLICT (tenant, id) DO UPDATE SET deleted_at = excluded.deleted_at, title = excluded.title, user_id = excluded.user_id
RETURNING id

-- name: discard_edges
-- Of an entity, or the one that is a fact.
INSERT INTO discarded_edges (tenant, entry, id, from_id, to_id, type, strength, confidence, first_seen_at, last_seen_at,
                             standing, recorded_at, replacements)
SELECT e.tenant, %(id)s, e.id, e.from_id, e.to_id, e.type, e.strength, e.confidence, e.first_seen_at, e.last_seen_at,
       e.standing, e.recorded_at,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(r.edge_id, r.replaced_by, r.replaced_at)), '[]')
        FROM edge_replacements r WHERE r.edge_id = e.id OR r.replaced_by = e.id)
FROM edges e
WHERE e.tenant = %(tenant)s AND (e.id = %(id)s OR e.from_id = %(id)s OR e.to_id = %(id)s)
  AND EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id
              AND NOT (v.source = 'job:consolidation' AND v.memory_id IS NULL AND v.user_id IS NULL))
ON CONFLICT DO NOTHING

-- name: discard_evidence
-- Locked, as the mentions are: a deletion of the memory that says it comes before this or after it.
INSERT INTO discarded_evidence (tenant, entry, edge_id, source, witness, memory_id, user_id, strength, confidence, seen_at)
SELECT d.tenant, d.entry, d.id, v.source, v.witness, v.memory_id, v.user_id, v.strength, v.confidence, v.seen_at
FROM discarded_edges d JOIN edge_evidence v ON v.edge_id = d.id
WHERE d.tenant = %(tenant)s AND d.entry = %(id)s
  AND NOT (v.source = 'job:consolidation' AND v.memory_id IS NULL AND v.user_id IS NULL)
FOR UPDATE OF v

-- name: discard_ends
-- The entity itself, and those at the ends of the edges: they may be deleted with these.
INSERT INTO discarded_entities (tenant, entry, id, key, name, type, aliases, confidence, is_asserted, first_seen_at,
                                last_seen_at, standing, names, witnesses)
SELECT n.tenant, %(id)s, n.id, n.key, n.name, n.type, n.aliases, n.confidence, n.is_asserted, n.first_seen_at,
       n.last_seen_at, n.standing,
       ARRAY(SELECT a.key FROM entity_names a WHERE a.entity_id = n.id ORDER BY a.key),
       ARRAY(SELECT w.witness FROM entity_witnesses w WHERE w.entity_id = n.id ORDER BY w.witness)
FROM entities n
WHERE n.tenant = %(tenant)s AND n.id IN (
    SELECT %(id)s
    UNION SELECT from_id FROM discarded_edges WHERE tenant = %(tenant)s AND entry = %(id)s
    UNION SELECT to_id FROM discarded_edges WHERE tenant = %(tenant)s AND entry = %(id)s)
ON CONFLICT DO NOTHING

-- name: discard_mentions
INSERT INTO discarded_mentions (tenant, entry, from_id, kind, from_tier, user_id, source, strength, seen_at)
SELECT tenant, %(id)s, from_id, kind, from_tier, user_id, source, strength, seen_at
FROM memory_links WHERE to_id = %(id)s AND tenant = %(tenant)s
FOR UPDATE

-- name: strip_discarded
-- What memories said that are deleted or rewritten.
WITH evidence AS (
    DELETE FROM discarded_evidence WHERE memory_id = ANY(%(ids)s)
)
DELETE FROM discarded_mentions WHERE from_id = ANY(%(ids)s)

-- name: strip_user
-- What a user's memories and statements said.
WITH evidence AS (
    DELETE FROM discarded_evidence WHERE tenant = %(tenant)s AND user_id = %(user_id)s RETURNING entry
), mentions AS (
    DELETE FROM discarded_mentions WHERE tenant = %(tenant)s AND user_id = %(user_id)s RETURNING entry
)
SELECT count(*) AS stripped FROM (TABLE evidence UNION ALL TABLE mentions) gone

-- name: drop_unfounded_edges
-- In the tenant's trash, as the next two.
DELETE FROM discarded_edges d
WHERE d.tenant = %(tenant)s
  AND NOT EXISTS (SELECT FROM discarded_evidence v WHERE v.tenant = d.tenant AND v.entry = d.entry AND v.edge_id = d.id)

-- name: drop_unfounded_entities
-- Those of which nothing is left: neither an edge nor a mention, and no caller stated the one that was deleted.
DELETE FROM discarded_entities n
WHERE n.tenant = %(tenant)s
  AND NOT EXISTS (SELECT FROM discarded_edges d
                  WHERE d.tenant = n.tenant AND d.entry = n.entry AND (d.from_id = n.id OR d.to_id = n.id))
  AND (n.id <> n.entry
       OR NOT n.is_asserted
          AND NOT EXISTS (SELECT FROM discarded_mentions m WHERE m.tenant = n.tenant AND m.entry = n.entry))

-- name: drop_unfounded_entries
DELETE FROM trash t
WHERE t.tenant = %(tenant)s AND t.kind IN ('entity', 'fact')
  AND NOT EXISTS (SELECT FROM discarded_entities n WHERE n.tenant = t.tenant AND n.entry = t.id)

-- name: find_returning_entities
-- Those of exactly this scope that are stated again; of several the one that was deleted last.
SELECT DISTINCT ON (t.content_hash) t.id
FROM unnest(%(keys)s::text[]) AS told (key)
JOIN trash t ON t.tenant = %(tenant)s AND t.workspace = %(workspace)s AND t.namespace = %(namespace)s
            AND t.kind = 'entity' AND t.content_hash = sha256_of(told.key)
WHERE t.user_id IS NOT DISTINCT FROM %(user_id)s AND t.deleted_at > %(cutoff)s
ORDER BY t.content_hash, t.deleted_at DESC

-- name: find_returning_facts
SELECT DISTINCT ON (t.content_hash) t.id
FROM unnest(%(subjects)s::text[], %(types)s::text[], %(objects)s::text[]) AS told (subject, type, object)
JOIN trash t ON t.tenant = %(tenant)s AND t.workspace = %(workspace)s AND t.namespace = %(namespace)s
            AND t.kind = 'fact' AND t.content_hash = sha256_of(ARRAY[told.subject, told.type, told.object])
WHERE t.user_id IS NOT DISTINCT FROM %(user_id)s AND t.deleted_at > %(cutoff)s
ORDER BY t.content_hash, t.deleted_at DESC

-- name: find_lost_names
-- The names of entities that entries bring back, as the graph does not have them.
SELECT DISTINCT n.name
FROM discarded_entities n
JOIN trash t ON t.tenant = n.tenant AND t.id = n.entry
WHERE n.tenant = %(tenant)s AND n.entry = ANY(%(ids)s)
  AND NOT EXISTS (SELECT FROM entities e
                  WHERE e.tenant = t.tenant AND e.workspace = t.workspace AND e.namespace = t.namespace
                    AND sha256_of(e.key) = sha256_of(n.key))
ORDER BY n.name
