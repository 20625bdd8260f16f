-- name: keep_named_entities
-- Those of these names, locked against deletion until the transaction ends: several writers may hold them together.
SELECT key, id, type, aliases, first_seen_at, last_seen_at, standing FROM entities
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND sha256_of(key) = ANY(ARRAY(SELECT sha256_of(wanted) FROM unnest(%(keys)s::text[]) AS wanted))
ORDER BY key COLLATE "C", id
FOR KEY SHARE

-- name: upsert_entities
-- A name that is seen again keeps its entity; a vague type gives way to a definite one. The subquery sees the row
-- from before the statement: none, if the entity is new or another writer made it meanwhile. Aliases come as JSON,
-- for an array of arrays would have to be square.
INSERT INTO entities AS e (
    id, tenant, workspace, namespace, key, name, type, aliases, confidence, is_asserted, generation, embedding,
    first_seen_at, last_seen_at
)
SELECT t.id, %(tenant)s, %(workspace)s, %(namespace)s, t.key, t.name, t.type,
       ARRAY(SELECT jsonb_array_elements_text(t.aliases)), t.confidence, t.is_asserted, %(generation)s, t.embedding,
       t.seen_at, t.seen_at
FROM unnest(%(ids)s::uuid[], %(keys)s::text[], %(names)s::text[], %(types)s::text[], %(aliases)s::jsonb[],
            %(confidences)s::float8[], %(asserted)s::bool[], %(embeddings)b::vector[], %(times)s::timestamptz[])
     AS t (id, key, name, type, aliases, confidence, is_asserted, embedding, seen_at)
ORDER BY t.key COLLATE "C"
ON CONFLICT (tenant, workspace, namespace, sha256_of(key)) DO UPDATE
SET type = CASE WHEN e.type = 'thing' OR excluded.is_asserted THEN excluded.type ELSE e.type END,
    aliases = ARRAY(SELECT DISTINCT unnest(e.aliases || excluded.aliases) ORDER BY 1),
    confidence = CASE WHEN excluded.is_asserted THEN excluded.confidence ELSE e.confidence END,
    is_asserted = e.is_asserted OR excluded.is_asserted,
    first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(e.last_seen_at, excluded.last_seen_at),
    standing = 1
RETURNING key, id, id = ANY(%(ids)s) AS is_new,
          first_seen_at IS DISTINCT FROM (SELECT o.first_seen_at FROM entities o WHERE o.id = e.id) AS is_earlier

-- name: insert_entity_names
INSERT INTO entity_names (tenant, workspace, namespace, key, entity_id)
SELECT %(tenant)s, %(workspace)s, %(namespace)s, t.key, t.id
FROM unnest(%(keys)s::text[], %(ids)s::uuid[]) AS t (key, id)
ORDER BY t.key COLLATE "C", t.id
ON CONFLICT DO NOTHING

-- name: find_entity_names
SELECT key, entity_id FROM entity_names
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND sha256_of(key) = ANY(ARRAY(SELECT sha256_of(wanted) FROM unnest(%(keys)s::text[]) AS wanted))
ORDER BY key, entity_id

-- name: find_alias_holders
-- The stated entities that have a name as an alias, the oldest first, where no entity has it as its own name. They are
-- locked against deletion until the transaction ends. Titles do not count: a private document may have them.
SELECT n.key, e.id
FROM entity_names n
JOIN entities e ON e.id = n.entity_id
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND sha256_of(n.key) = ANY(ARRAY(SELECT sha256_of(wanted) FROM unnest(%(keys)s::text[]) AS wanted))
  AND e.is_asserted
  AND NOT EXISTS (
      SELECT FROM entities o
      WHERE o.tenant = n.tenant AND o.workspace = n.workspace AND o.namespace = n.namespace
        AND sha256_of(o.key) = sha256_of(n.key))
ORDER BY n.key, e.id
FOR KEY SHARE OF e

-- name: touch_entity
UPDATE entities
SET first_seen_at = least(first_seen_at, %(seen_at)s), last_seen_at = greatest(last_seen_at, %(seen_at)s), standing = 1
WHERE id = %(id)s
  AND (standing < 1 OR first_seen_at > %(seen_at)s OR last_seen_at < %(seen_at)s - %(seen_within)s::interval)

-- name: upsert_edges
-- Each once. An edge that is seen again starts to decay anew. Its strength and confidence come from its evidence
-- (weigh_edges).
INSERT INTO edges AS e (
    id, tenant, workspace, namespace, from_id, to_id, type, strength, confidence, first_seen_at, last_seen_at
)
SELECT t.id, %(tenant)s, %(workspace)s, %(namespace)s, t.from_id, t.to_id, t.type, t.strength, t.confidence,
       t.first_seen_at, t.last_seen_at
FROM unnest(%(ids)s::uuid[], %(from_ids)s::uuid[], %(to_ids)s::uuid[], %(types)s::text[], %(strengths)s::float8[],
            %(confidences)s::float8[], %(first_times)s::timestamptz[], %(last_times)s::timestamptz[])
     WITH ORDINALITY AS t (id, from_id, to_id, type, strength, confidence, first_seen_at, last_seen_at, place)
ORDER BY t.place
ON CONFLICT (from_id, to_id, type) DO UPDATE
SET first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(e.last_seen_at, excluded.last_seen_at),
    standing = 1
RETURNING id, from_id, to_id, type, id = ANY(%(ids)s) AS is_new

-- name: insert_edge_evidence
-- A source counts once, with its first confidence; repeating itself, it can only raise the strength.
INSERT INTO edge_evidence AS v (edge_id, source, witness, memory_id, user_id, strength, confidence, seen_at)
SELECT t.edge_id, t.source, t.witness, t.memory_id, t.owner, t.strength, t.confidence, t.seen_at
FROM unnest(%(edge_ids)s::uuid[], %(sources)s::text[], %(witnesses)s::text[], %(memory_ids)s::uuid[],
            %(owners)s::text[], %(strengths)s::float8[], %(confidences)s::float8[], %(times)s::timestamptz[])
     AS t (edge_id, source, witness, memory_id, owner, strength, confidence, seen_at)
ON CONFLICT (edge_id, sha256_of(source), memory_id, user_id) DO UPDATE
SET strength = excluded.strength
WHERE v.strength < excluded.strength

-- name: find_backed_edges
-- The edges that these memories say already, locked against other weighers: each piece of evidence, by its place, with
-- its edge.
SELECT told.place, e.id, e.from_id
FROM unnest(%(subjects)s::text[], %(types)s::text[], %(objects)s::text[], %(memory_ids)s::uuid[])
     WITH ORDINALITY AS told (subject, type, object, memory_id, place)
JOIN entities s ON s.tenant = %(tenant)s AND s.workspace = %(workspace)s AND s.namespace = %(namespace)s
               AND sha256_of(s.key) = sha256_of(told.subject)
JOIN entities o ON o.tenant = %(tenant)s AND o.workspace = %(workspace)s AND o.namespace = %(namespace)s
               AND sha256_of(o.key) = sha256_of(told.object)
JOIN edges e ON e.from_id = s.id AND e.to_id = o.id AND e.type = told.type
WHERE EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id AND v.memory_id = told.memory_id)
ORDER BY e.id
FOR UPDATE OF e

-- name: weigh_edges
-- Independent witnesses add up to certainty, 1 - (1 - a)(1 - b)…, and each has one vote on the strength, which weighs
-- as much as it is sure. One that says the same in many texts and from many sources is as sure as in the surest of them;
-- one source that several name counts once. Where nobody knows the witness, each source counts, and all have one vote.
-- An edge has one strength and one confidence for all its readers. They come from its shared evidence where it has any,
-- so that the private evidence of one user changes nothing for the others; only an edge without shared evidence rests on
-- private evidence.
UPDATE edges e
SET strength = w.strength, confidence = least(0.99, w.confidence)
FROM (
    SELECT edge_id, round((sum(strength * sureness) / sum(sureness))::numeric, 12) AS strength,
           1 - exp(sum(ln(greatest(1 - confidence, 0.01)))) AS confidence
    FROM (
        SELECT edge_id, strength, confidence, greatest(confidence, 0.01) AS sureness
        FROM (
            SELECT edge_id, witness, max(strength) AS strength,
                   CASE WHEN witness IS NULL THEN 1 - exp(sum(ln(greatest(1 - confidence, 0.01))))
                        ELSE max(confidence) END AS confidence
            FROM (
                SELECT v.edge_id, CASE WHEN bool_and(v.witness IS NOT NULL) THEN min(v.witness) END AS witness,
                       max(v.strength) AS strength, max(v.confidence) AS confidence
                FROM edge_evidence v
                WHERE v.edge_id = ANY(%(ids)s)
                  AND (v.user_id IS NULL
                       OR NOT EXISTS (SELECT FROM edge_evidence o WHERE o.edge_id = v.edge_id AND o.user_id IS NULL))
                GROUP BY v.edge_id, v.source
            ) sources
            GROUP BY edge_id, witness
        ) witnesses
    ) votes
    GROUP BY edge_id
) w
WHERE e.id = w.edge_id

-- name: find_first_words
-- Those of the words that a name begins with; one index lookup for each word.
SELECT said.word
FROM unnest(%(words)s::text[]) AS said (word)
CROSS JOIN LATERAL (
    SELECT FROM entity_names
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND sha256_of(split_part(key, ' ', 1)) = sha256_of(said.word)
    LIMIT 1
) AS known

-- name: keep_entities
-- Existing ones, locked against deletion until the transaction ends.
SELECT id FROM entities
WHERE id = ANY(%(ids)s)
  AND tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
ORDER BY key COLLATE "C", id
FOR KEY SHARE

-- name: find_unembedded_entities
-- By id. OFFSET 0: as in find_unembedded_messages.
SELECT e.id, sha256_of(e.name) AS guard, e.name
FROM entities e
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND (%(after)s::uuid IS NULL OR e.id > %(after)s)
  AND e.generation IS DISTINCT FROM %(generation)s::smallint
  AND (NOT EXISTS (SELECT FROM entity_embeddings o
                   WHERE o.entity_id = e.id AND o.generation = %(generation)s AND o.text_hash = sha256_of(e.name)
                   OFFSET 0)
       OR EXISTS (SELECT FROM refused_texts f WHERE f.generation = %(generation)s AND f.id = e.id))
ORDER BY e.id
LIMIT %(limit)s

-- name: embed_entities
-- For entities with the same name. An entity that was written with this generation's model has the vector in its
-- row.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(embeddings)b::vector[]) AS m (id, guard, embedding)
), locked AS (
    SELECT e.id, e.tenant, e.workspace, e.namespace
    FROM entities e
    WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
      AND e.generation <> %(generation)s
      AND e.id = ANY(%(ids)s) AND e.id IN (SELECT made.id FROM made WHERE made.guard = sha256_of(e.name))
    ORDER BY e.id
    FOR SHARE
)
INSERT INTO entity_embeddings (entity_id, generation, tenant, workspace, namespace, text_hash, embedding)
SELECT l.id, %(generation)s, l.tenant, l.workspace, l.namespace, m.guard, m.embedding
FROM locked l
JOIN made m ON m.id = l.id
ON CONFLICT (entity_id, generation) DO UPDATE SET text_hash = excluded.text_hash, embedding = excluded.embedding
WHERE entity_embeddings.text_hash <> excluded.text_hash
RETURNING entity_id AS id

-- name: read_graph_nodes
-- Nodes of the graph: memories with their links, entities with their edges that have not faded. Times of links are
-- in microseconds, and so are those between which an edge held that ended at some time. A link to a hidden note stays out until that note comes back, for the graph lost it with the
-- note's node. The note is looked up rather than joined, or a page might be joined with all of them.
SELECT id, 'Memory' AS label, 2 AS tier, tenant, workspace, namespace, user_id, NULL AS name, event_at AS seen_at,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(
                   l.to_id, l.kind, l.strength, CASE WHEN l.user_id IS NULL THEN NULL ELSE jsonb_build_array(l.user_id) END,
                   (extract(epoch FROM l.seen_at) * 1000000)::bigint) ORDER BY l.to_id, l.kind), '[]')
        FROM memory_links l
        WHERE l.from_id = notes.id
          AND (l.kind <> 'similar' OR (SELECT o.deleted_at FROM notes o WHERE o.id = l.to_id) IS NULL)) AS links
FROM notes WHERE id = ANY(%(ids)s) AND deleted_at IS NULL
UNION ALL
SELECT id, 'Memory', 1, tenant, workspace, namespace, user_id, NULL, occurred_at,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(
                   l.to_id, l.kind, l.strength, CASE WHEN l.user_id IS NULL THEN NULL ELSE jsonb_build_array(l.user_id) END,
                   (extract(epoch FROM l.seen_at) * 1000000)::bigint) ORDER BY l.to_id, l.kind), '[]')
        FROM memory_links l WHERE l.from_id = messages.id)
FROM messages WHERE id = ANY(%(ids)s) AND compacted_at IS NULL
UNION ALL
SELECT p.id, 'Memory', 6, p.tenant, p.workspace, p.namespace, p.user_id, NULL, d.event_at,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(
                   l.to_id, l.kind, l.strength, CASE WHEN l.user_id IS NULL THEN NULL ELSE jsonb_build_array(l.user_id) END,
                   (extract(epoch FROM l.seen_at) * 1000000)::bigint) ORDER BY l.to_id, l.kind), '[]')
        FROM memory_links l WHERE l.from_id = p.id)
FROM passages p JOIN documents d ON d.id = p.document_id WHERE p.id = ANY(%(ids)s)
UNION ALL
SELECT n.id, 'Entity', 4, n.tenant, n.workspace, n.namespace, NULL, n.name, n.first_seen_at,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(
                   e.to_id, e.type, e.strength * e.confidence * e.standing,
                   (SELECT CASE WHEN count(*) FILTER (WHERE v.user_id IS NULL) = 0
                                THEN jsonb_agg(DISTINCT v.user_id ORDER BY v.user_id) END
                    FROM edge_evidence v WHERE v.edge_id = e.id),
                   (extract(epoch FROM e.first_seen_at) * 1000000)::bigint,
                   (SELECT coalesce(jsonb_agg(jsonb_build_array(
                               (extract(epoch FROM began_at) * 1000000)::bigint,
                               (extract(epoch FROM ended_at) * 1000000)::bigint) ORDER BY began_at), '[]')
                    FROM (
                        SELECT lower(h), upper(h) FROM unnest(e.held_before) AS h
                        UNION ALL SELECT coalesce(e.valid_from, e.first_seen_at), e.valid_to
                    ) AS held (began_at, ended_at)
                    WHERE e.valid_to IS NOT NULL OR e.held_before <> '{}')) ORDER BY e.to_id, e.type), '[]')
        FROM edges e WHERE e.from_id = n.id AND e.strength * e.standing >= %(least_strength)s)
FROM entities n WHERE n.id = ANY(%(ids)s)

-- name: list_graph_ids
SELECT id FROM (
    SELECT id, tenant FROM entities
    UNION ALL SELECT id, tenant FROM notes WHERE deleted_at IS NULL
    UNION ALL SELECT id, tenant FROM messages WHERE compacted_at IS NULL
    UNION ALL SELECT id, tenant FROM passages
) everything
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s

-- name: enqueue_all_graph
INSERT INTO outbox (projection, memory_id)
SELECT 'graph', id FROM (
    SELECT id FROM entities
    UNION ALL SELECT id FROM notes WHERE deleted_at IS NULL
    UNION ALL SELECT id FROM messages WHERE compacted_at IS NULL
    UNION ALL SELECT id FROM passages
) everything

-- name: count_unembedded_entities
-- Entities of everybody that are older than a while and lack a vector of a generation. Their ids tell their time (UUID
-- version 7).
WITH since AS (
    SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp() - %(grace)s::interval) * 1000)::bigint), 12, '0')
            || repeat('0', 20))::uuid AS id
)
SELECT count(*) AS lacking
FROM entities e, since
WHERE e.id < since.id AND e.generation <> %(generation)s
  AND NOT EXISTS (SELECT FROM entity_embeddings o
                  WHERE o.entity_id = e.id AND o.generation = %(generation)s AND o.text_hash = sha256_of(e.name))

-- name: count_user_links
-- The links of a user's memories, and the edges that rest on them.
SELECT (SELECT count(*) FROM memory_links WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS links,
       (SELECT count(*) FROM edge_evidence v JOIN edges e ON e.id = v.edge_id
        WHERE e.tenant = %(tenant)s AND v.user_id = %(user_id)s) AS evidence

-- name: find_present_nodes
SELECT id FROM entities WHERE id = ANY(%(ids)s) AND tenant = %(tenant)s
UNION ALL
SELECT id FROM edges WHERE id = ANY(%(ids)s) AND tenant = %(tenant)s

-- name: read_told
-- The evidence of memories, by the names of its ends, and the entities that they name.
WITH evidence AS (
    SELECT v.memory_id AS memory, v.source, v.witness, v.user_id AS user, v.seen_at, v.strength, v.confidence,
           s.name AS subject, e.type, o.name AS object
    FROM edge_evidence v
    JOIN edges e ON e.id = v.edge_id
    JOIN entities s ON s.id = e.from_id
    JOIN entities o ON o.id = e.to_id
    WHERE v.memory_id = ANY(%(ids)s)
), named AS (
    SELECT DISTINCT e.name, e.type
    FROM memory_links l JOIN entities e ON e.id = l.to_id
    WHERE l.from_id = ANY(%(ids)s) AND l.kind IN ('about', 'mentions')
)
SELECT (SELECT coalesce(json_agg(row_to_json(evidence)), '[]') FROM evidence) AS evidence,
       (SELECT coalesce(json_agg(row_to_json(named)), '[]') FROM named) AS entities
