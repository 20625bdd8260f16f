-- name: upsert_entity
-- A name seen again keeps its entity; a vague type gives way to a definite one. The subquery sees what was there before
-- the statement: nothing, of an entity that is new or that another writer made meanwhile.
INSERT INTO entities AS e (
    id, tenant, workspace, namespace, key, name, type, aliases, confidence, is_asserted, generation, embedding,
    first_seen_at, last_seen_at
) VALUES (
    %(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(key)s, %(name)s, %(type)s, %(aliases)s, %(confidence)s,
    %(is_asserted)s, %(generation)s, %(embedding)s, %(seen_at)s, %(seen_at)s
)
ON CONFLICT (tenant, workspace, namespace, sha256_of(key)) DO UPDATE
SET type = CASE WHEN e.type = 'thing' OR excluded.is_asserted THEN excluded.type ELSE e.type END,
    aliases = ARRAY(SELECT DISTINCT unnest(e.aliases || excluded.aliases) ORDER BY 1),
    confidence = CASE WHEN excluded.is_asserted THEN excluded.confidence ELSE e.confidence END,
    is_asserted = e.is_asserted OR excluded.is_asserted,
    first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(e.last_seen_at, excluded.last_seen_at),
    standing = 1
RETURNING id, id = %(id)s AS is_new,
          first_seen_at IS DISTINCT FROM (SELECT o.first_seen_at FROM entities o WHERE o.id = e.id) AS is_earlier

-- name: insert_entity_name
INSERT INTO entity_names (tenant, workspace, namespace, key, entity_id)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s, %(key)s, %(entity_id)s)
ON CONFLICT DO NOTHING

-- name: find_entity_names
SELECT key, entity_id FROM entity_names
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND sha256_of(key) = ANY(ARRAY(SELECT sha256_of(wanted) FROM unnest(%(keys)s::text[]) AS wanted))
ORDER BY key, entity_id

-- name: upsert_edge
-- Seen again, an edge starts to decay anew. How strong and how sure it then is, weigh_edges tells from its evidence.
INSERT INTO edges AS e (
    id, tenant, workspace, namespace, from_id, to_id, type, strength, confidence, first_seen_at, last_seen_at
) VALUES (
    %(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(from_id)s, %(to_id)s, %(type)s, %(strength)s, %(confidence)s,
    %(seen_at)s, %(seen_at)s
)
ON CONFLICT (from_id, to_id, type) DO UPDATE
SET first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(e.last_seen_at, excluded.last_seen_at),
    standing = 1
RETURNING id, id = %(id)s AS is_new

-- name: insert_edge_evidence
-- A source counts once, as sure as it was first; what it says again can only make the edge stronger.
INSERT INTO edge_evidence AS v (edge_id, source, memory_id, user_id, strength, confidence, seen_at)
VALUES (%(edge_id)s, %(source)s, %(memory_id)s, %(owner)s, %(strength)s, %(confidence)s, %(seen_at)s)
ON CONFLICT (edge_id, sha256_of(source), memory_id, user_id) DO UPDATE
SET strength = excluded.strength
WHERE v.strength < excluded.strength

-- name: weigh_edges
-- Independent sources add up to certainty, 1 - (1 - a)(1 - b)…; the same source counts once. An edge has one strength
-- and one confidence for all its readers: they come from its shared evidence alone where it has any, so that what one
-- user keeps to himself changes nothing for the others; only an edge that is nobody's but some users' rests on theirs.
UPDATE edges e
SET strength = w.strength, confidence = least(0.99, w.confidence)
FROM (
    SELECT edge_id, max(strength) AS strength, 1 - exp(sum(ln(greatest(1 - confidence, 0.01)))) AS confidence
    FROM (
        SELECT v.edge_id, max(v.strength) AS strength, max(v.confidence) AS confidence
        FROM edge_evidence v
        WHERE v.edge_id = ANY(%(ids)s)
          AND (v.user_id IS NULL
               OR NOT EXISTS (SELECT FROM edge_evidence o WHERE o.edge_id = v.edge_id AND o.user_id IS NULL))
        GROUP BY v.edge_id, v.source
    ) sources
    GROUP BY edge_id
) w
WHERE e.id = w.edge_id

-- name: find_openings
-- Which of these words some name begins with; one look into the index for each word.
SELECT said.word
FROM unnest(%(words)s::text[]) AS said (word)
CROSS JOIN LATERAL (
    SELECT FROM entity_names
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND sha256_of(split_part(key, ' ', 1)) = sha256_of(said.word)
    LIMIT 1
) AS known

-- name: keep_entities
-- Those of these entities that are still there, and stay until the transaction ends.
SELECT id FROM entities
WHERE id = ANY(%(ids)s)
  AND tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
ORDER BY key COLLATE "C", id
FOR KEY SHARE
