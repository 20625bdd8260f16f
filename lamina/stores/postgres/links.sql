-- name: put_mentions
-- Links memories to entities, and makes these surer: once for each witness that did not mention the entity before;
-- where nobody knows the witness, for each new source. A new source lets it stand again, whoever vouches for it. A row
-- that would stay the same, but for the time of its last mention within a minute, is not written (SEEN_WITHIN).
WITH told AS (
    SELECT * FROM unnest(%(entity_ids)s::uuid[], %(memory_ids)s::uuid[], %(sources)s::text[], %(witnesses)s::text[],
                         %(times)s::timestamptz[], %(kinds)s::text[], %(tiers)s::int2[], %(owners)s::text[],
                         %(strengths)s::float8[])
                  AS t (entity_id, memory_id, source, witness, seen_at, kind, tier, owner, strength)
), linked AS (
    INSERT INTO memory_links (
        from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
    )
    SELECT memory_id, entity_id, kind, tier, %(tenant)s, %(workspace)s, %(namespace)s, owner, source, strength, seen_at
    FROM told
    ON CONFLICT DO NOTHING
), new_witnesses AS (
    INSERT INTO entity_witnesses (entity_id, witness)
    SELECT DISTINCT entity_id, witness FROM told WHERE witness IS NOT NULL ORDER BY entity_id, witness
    ON CONFLICT DO NOTHING
    RETURNING entity_id, witness
)
UPDATE entities e
SET confidence = CASE WHEN n.is_surer THEN least(0.99, e.confidence + 0.1 * (1 - e.confidence)) ELSE e.confidence END,
    standing = 1, last_seen_at = greatest(e.last_seen_at, n.seen_at)
FROM (
    SELECT entity_id, max(seen_at) AS seen_at,
           bool_or(CASE WHEN witness IS NULL THEN is_new_source ELSE is_new_witness END) AS is_surer
    FROM (
        SELECT told.*, w.entity_id IS NOT NULL AS is_new_witness, NOT EXISTS (
                   SELECT FROM memory_links l
                   WHERE l.to_id = told.entity_id AND sha256_of(l.source) = sha256_of(told.source)
                     AND NOT l.from_id = ANY(%(memory_ids)s::uuid[])
               ) AS is_new_source
        FROM told LEFT JOIN new_witnesses w USING (entity_id, witness)
    ) heard
    WHERE is_new_source OR is_new_witness
    GROUP BY entity_id
    ORDER BY entity_id
) n
WHERE e.id = n.entity_id
  AND ((n.is_surer AND e.confidence < 0.99) OR e.standing < 1 OR e.last_seen_at < n.seen_at - interval '1 minute')

-- name: raise_mentioned_confidence
-- Of the entities that memories mention, once for a witness that did not mention them before.
WITH new_witnesses AS (
    INSERT INTO entity_witnesses (entity_id, witness)
    SELECT DISTINCT to_id, %(witness)s FROM memory_links WHERE from_id = ANY(%(ids)s) AND kind IN ('about', 'mentions')
    ORDER BY to_id
    ON CONFLICT DO NOTHING
    RETURNING entity_id
)
UPDATE entities e
SET confidence = least(0.99, e.confidence + 0.1 * (1 - e.confidence)), standing = 1
FROM (SELECT entity_id FROM new_witnesses ORDER BY entity_id) n
WHERE e.id = n.entity_id

-- name: delete_evidence
-- Returns the edges that lose it, with their ends.
DELETE FROM edge_evidence v USING edges e
WHERE v.memory_id = ANY(%(ids)s) AND e.id = v.edge_id
RETURNING e.id AS edge_id, e.from_id, e.to_id

-- name: delete_links
DELETE FROM memory_links WHERE from_id = ANY(%(ids)s) OR to_id = ANY(%(ids)s)
RETURNING from_id, to_id, kind

-- name: lock_entities
-- Before entities are deleted: the next statement sees the commits that happened while this one waited. In the order
-- in which writers put entities, so that the two cannot deadlock.
SELECT id FROM entities WHERE id = ANY(%(ids)s) ORDER BY key COLLATE "C", id FOR UPDATE

-- name: lock_edges
-- Before edges are weighed or deleted: the next statement sees the commits that happened while this one waited.
SELECT id FROM edges WHERE id = ANY(%(ids)s) ORDER BY id FOR UPDATE

-- name: delete_unfounded_edges
-- The edges are locked (lock_edges), or one with new evidence could be deleted.
DELETE FROM edges e
WHERE e.id = ANY(%(ids)s) AND NOT EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id)

-- name: delete_unmentioned_entities
-- The entities are locked (lock_entities), or one with a new mention could be deleted. Neither a mention by a hidden
-- note nor an inferred edge keeps an entity; they are deleted with it. A merged note counts, for its survivor says
-- the same. One mention is looked up rather than joined, or an entity of many would be joined with all notes.
WITH gone AS (
    DELETE FROM entities n
    WHERE n.id = ANY(%(ids)s) AND NOT n.is_asserted
      AND (SELECT l.from_id FROM memory_links l LEFT JOIN notes m ON m.id = l.from_id
           WHERE l.to_id = n.id AND (m.deleted_at IS NULL OR m.merged_into IS NOT NULL) LIMIT 1) IS NULL
      AND NOT EXISTS (
          SELECT FROM edges e JOIN edge_evidence v ON v.edge_id = e.id
          WHERE (e.from_id = n.id OR e.to_id = n.id)
            AND NOT (v.source = 'job:consolidation' AND v.memory_id IS NULL AND v.user_id IS NULL))
    RETURNING n.id
), unlinked AS (
    DELETE FROM memory_links l USING gone WHERE l.to_id = gone.id
)
SELECT id FROM gone

-- name: find_unlinked
-- Memories with the words of one of these names in a row; the entities are newer than they are.
SELECT DISTINCT told.id
FROM (
    SELECT found.id
    FROM unnest(%(keys)s::text[]) AS wanted (key)
    CROSS JOIN LATERAL phraseto_tsquery('lamina', wanted.key) AS asked
    CROSS JOIN LATERAL (
        (SELECT n.id
         FROM note_chunks c
         JOIN notes n ON n.id = c.note_id AND n.deleted_at IS NULL
             AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
         WHERE c.tenant = %(tenant)s AND c.workspace = %(workspace)s AND c.namespace = %(namespace)s AND c.tsv @@ asked
         LIMIT %(limit)s)
        UNION ALL
        (SELECT c.passage_id
         FROM passage_chunks c
         WHERE c.tenant = %(tenant)s AND c.workspace = %(workspace)s AND c.namespace = %(namespace)s AND c.tsv @@ asked
         LIMIT %(limit)s)
    ) found
    WHERE asked <> ''
    LIMIT %(limit_in_all)s
) told
ORDER BY told.id

-- name: lock_unlinked_notes
-- Existing ones with their present text, locked until the transaction ends.
SELECT n.id, 2 AS tier, n.content, n.user_id, n.source, n.event_at AS seen_at
FROM notes n
WHERE n.id = ANY(%(ids)s) AND n.deleted_at IS NULL AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
ORDER BY n.id
FOR SHARE

-- name: lock_unlinked_passages
-- Existing ones, locked until the transaction ends.
SELECT p.id, 6 AS tier, p.content, p.user_id, d.source, d.event_at AS seen_at
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE p.id = ANY(%(ids)s)
  AND p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
ORDER BY p.id
FOR KEY SHARE OF p

-- name: copy_mentions
-- Mentions of the entities that summaries name, copied from their sources with the same source: a summary is no new
-- evidence.
INSERT INTO memory_links (
    from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
)
SELECT DISTINCT ON (told.id, l.to_id)
       told.id, l.to_id, l.kind, l.from_tier, l.tenant, l.workspace, l.namespace, l.user_id, l.source, l.strength, l.seen_at
FROM unnest(%(ids)s::uuid[], %(sources)s::uuid[]) AS told (id, source_id)
JOIN memory_links l ON l.from_id = told.source_id AND l.kind = 'mentions'
JOIN unnest(%(namers)s::uuid[], %(entities)s::uuid[]) AS named (id, entity_id)
     ON named.id = told.id AND named.entity_id = l.to_id
WHERE l.tenant = %(tenant)s AND l.workspace = %(workspace)s AND l.namespace = %(namespace)s
ORDER BY told.id, l.to_id, l.seen_at DESC, l.from_id
ON CONFLICT DO NOTHING

-- name: find_entity_and_neighbours
-- An entity with those at the other ends of its edges.
SELECT e.workspace, e.namespace,
       ARRAY(SELECT CASE WHEN d.from_id = e.id THEN d.to_id ELSE d.from_id END
             FROM edges d WHERE d.from_id = e.id OR d.to_id = e.id) AS neighbours
FROM entities e
WHERE e.id = %(id)s AND e.tenant = %(tenant)s

-- name: delete_entity
-- Its names and edges, and their evidence, are deleted with it.
DELETE FROM entities WHERE id = %(id)s

-- name: lock_ends_of_edge
-- As lock_entities does.
SELECT n.id FROM edges e JOIN entities n ON n.id IN (e.from_id, e.to_id)
WHERE e.id = %(id)s AND e.tenant = %(tenant)s
ORDER BY n.key COLLATE "C", n.id
FOR UPDATE OF n

-- name: delete_edge_evidence
-- All of an edge; the edge is deleted as one without evidence (prune_evidence). With its user, if one alone states it.
WITH gone AS (
    DELETE FROM edge_evidence v USING edges e
    WHERE e.id = %(id)s AND e.tenant = %(tenant)s AND v.edge_id = e.id
    RETURNING v.user_id
)
SELECT workspace, namespace, from_id, to_id,
       (SELECT CASE WHEN min(user_id) = max(user_id) AND bool_and(user_id IS NOT NULL) THEN min(user_id) END
        FROM gone) AS user_id
FROM edges WHERE id = %(id)s AND tenant = %(tenant)s
