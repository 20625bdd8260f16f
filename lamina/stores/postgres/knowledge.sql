-- name: find_seeds
-- Entities known by one of the keys, those whose name is near the query, by the vectors of one generation: those in the
-- rows, and those in a table beside them; and the titles of the passages nearest to it, as they describe what it asks
-- for. Each with the number of memories that mention it, and so the entities that a walk from these will weigh: those at
-- the ends of their edges, and those that the same memories mention. Counting stops where more would make no difference.
-- How many candidates a vector index considers is set as the scan of it asks for its vector: its first step reads both.
WITH among_entities AS MATERIALIZED (
    SELECT %(embedding)s::vector AS embedding, set_config('hnsw.ef_search', %(entities_ef)s::text, true) AS ef_search
), among_passages AS MATERIALIZED (
    SELECT %(embedding)s::vector AS embedding, set_config('hnsw.ef_search', '32', true) AS ef_search
), found AS (
    SELECT key, entity_id AS id, NULL::float8 AS cosine, false AS is_described
    FROM entity_names
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND sha256_of(key) = ANY(ARRAY(SELECT sha256_of(wanted) FROM unnest(%(keys)s::text[]) AS wanted))
    UNION ALL
    (SELECT NULL, id, 1 - distance, false FROM (
        (SELECT id, embedding /*typed*/ <=> %(embedding)s::vector /*typed*/ AS distance
         FROM entities
         WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
           AND generation = %(generation)s AND %(embedding)s::vector IS NOT NULL
         ORDER BY embedding /*typed*/ <=> (SELECT embedding FROM among_entities) /*typed*/
         LIMIT %(limit)s)
        UNION ALL
        (SELECT entity_id, embedding /*typed*/ <=> %(embedding)s::vector /*typed*/
         FROM entity_embeddings
         WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
           AND generation = %(generation)s AND %(embedding)s::vector IS NOT NULL
         ORDER BY embedding /*typed*/ <=> (SELECT embedding FROM among_entities) /*typed*/
         LIMIT %(limit)s)
     ) nearest
     WHERE 1 - distance >= %(min_similarity)s
     ORDER BY distance, id
     LIMIT %(limit)s)
    UNION ALL
    SELECT NULL, about.to_id, 1 - nearest.distance, true
    FROM (
        SELECT passage_id, embedding /*typed*/ <=> %(embedding)s::vector /*typed*/ AS distance
        FROM passage_chunks
        WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
          AND generation = %(generation)s AND %(embedding)s::vector IS NOT NULL
          AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
          AND (NOT %(shared_only)s OR user_id IS NULL)
          -- A scan of the index for what is not there takes 20 ms.
          AND EXISTS (SELECT FROM documents d WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s
                      AND d.namespace = %(namespace)s)
        ORDER BY embedding /*typed*/ <=> (SELECT embedding FROM among_passages) /*typed*/
        LIMIT %(passages)s
    ) AS nearest
    JOIN memory_links about ON about.from_id = nearest.passage_id AND about.kind = 'about'
), starts AS MATERIALIZED (
    SELECT DISTINCT id FROM found
), weighed AS (
    SELECT id FROM starts
    UNION
    SELECT beside.id FROM starts CROSS JOIN LATERAL (
        (SELECT e.to_id AS id FROM edges e WHERE e.from_id = starts.id LIMIT %(around)s)
        UNION ALL
        (SELECT e.from_id FROM edges e WHERE e.to_id = starts.id LIMIT %(around)s)
    ) beside
    UNION
    SELECT other.to_id
    FROM starts
    CROSS JOIN LATERAL (
        SELECT l.from_id FROM memory_links l
        WHERE l.to_id = starts.id AND l.kind IN ('about', 'mentions')
        LIMIT %(around)s
    ) memory
    JOIN memory_links other ON other.from_id = memory.from_id AND other.kind = 'mentions'
)
SELECT found.key, weighed.id, found.cosine, coalesce(found.is_described, false) AS is_described, (
    SELECT count(*) FROM (
        SELECT FROM memory_links l WHERE l.to_id = weighed.id AND l.kind = 'mentions' LIMIT %(common)s
    ) counted
) AS mentions
FROM weighed
LEFT JOIN found USING (id)
ORDER BY key, id

-- name: count_mentions
-- Number of memories that mention each entity; counting stops where more would make no difference.
SELECT wanted.id, (
    SELECT count(*) FROM (
        SELECT FROM memory_links l WHERE l.to_id = wanted.id AND l.kind = 'mentions' LIMIT %(limit)s
    ) counted
) AS mentions
FROM unnest(%(ids)s::uuid[]) AS wanted (id)

-- name: read_entities
-- Entities that the query may see: asserted ones, and those that a visible memory mentions. Counting stops where
-- more would make no difference. An entity that rests on expiring notes alone expires with the last of them.
SELECT n.id, n.name, n.type, n.aliases, n.confidence * n.standing AS confidence, n.is_asserted, n.first_seen_at,
       n.last_seen_at, nullif(told.until, 'infinity') AS expires_at,
       (SELECT count(*) FROM (
            SELECT FROM memory_links l
            WHERE l.to_id = n.id AND l.kind = 'mentions'
              AND (%(user_id)s::text IS NULL OR l.user_id IS NULL OR l.user_id = %(user_id)s)
              AND (NOT %(shared_only)s OR l.user_id IS NULL)
              AND NOT EXISTS (SELECT FROM notes x WHERE x.id = l.from_id
                              AND (x.expires_at <= statement_timestamp()
                                   OR (x.deleted_at IS NOT NULL AND x.merged_into IS NULL)))
            LIMIT 10000
        ) counted) AS mentions
FROM entities n
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN n.is_asserted
             OR EXISTS (SELECT FROM memory_links l WHERE l.to_id = n.id
                        AND (%(user_id)s::text IS NULL OR l.user_id IS NULL OR l.user_id = %(user_id)s)
                        AND (NOT %(shared_only)s OR l.user_id IS NULL)
                        AND NOT EXISTS (SELECT FROM notes x WHERE x.id = l.from_id AND x.expires_at IS NOT NULL))
             OR EXISTS (SELECT FROM edges e JOIN edge_evidence v ON v.edge_id = e.id
                        WHERE (e.from_id = n.id OR e.to_id = n.id)
                          AND (%(user_id)s::text IS NULL OR v.user_id IS NULL OR v.user_id = %(user_id)s)
                          AND (NOT %(shared_only)s OR v.user_id IS NULL)
                          AND NOT EXISTS (SELECT FROM notes x WHERE x.id = v.memory_id AND x.expires_at IS NOT NULL))
        THEN 'infinity'
        ELSE (SELECT max(x.expires_at)
              FROM (
                  SELECT l.from_id, l.user_id FROM memory_links l WHERE l.to_id = n.id
                  UNION ALL
                  SELECT v.memory_id, v.user_id
                  FROM edges e JOIN edge_evidence v ON v.edge_id = e.id
                  WHERE e.from_id = n.id OR e.to_id = n.id
              ) AS teller (id, user_id)
              JOIN notes x ON x.id = teller.id AND x.expires_at > statement_timestamp()
              WHERE (%(user_id)s::text IS NULL OR teller.user_id IS NULL OR teller.user_id = %(user_id)s)
                AND (NOT %(shared_only)s OR teller.user_id IS NULL))
        END AS until
) told
WHERE /*chosen*/ n.id = ANY(%(ids)s)
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND told.until IS NOT NULL
  AND /*filters*/ true
ORDER BY n.id

-- name: reached_memories
-- The parts of one statement over all that a walk has reached. This one is around a tier's own statement.
SELECT %(tier)s::integer AS tier, found.*, NULL::uuid AS from_id, NULL::uuid AS to_id, NULL::text AS name,
       NULL::text AS type, NULL::text AS object, NULL::text[] AS aliases, NULL::text[] AS speakers
FROM (/*memories*/) AS found

-- name: reached_edges
-- Edges (from, to, type) that have not faded and whose evidence the query may see. An edge expires with the last
-- note that it rests on. Its time is since when it holds, or held at the moment of the question, by the evidence that
-- the query may see. One that held no longer at that moment says until when, and what came later. It names who stated it
-- if all of its last evidence does.
SELECT 4, e.id, coalesce(told.since, e.first_seen_at), NULL::integer, NULL::integer, e.confidence, e.strength * e.standing, NULL,
       NULL::timestamptz, 'warm', nullif(told.until, 'infinity'), NULL::float8, e.from_id, e.to_id, s.name, e.type,
       o.name || CASE
           WHEN e.valid_to <= coalesce(%(moment)s::timestamptz, now())
                AND NOT e.held_before @> coalesce(%(moment)s::timestamptz, now())
           THEN to_char(e.valid_to AT TIME ZONE 'UTC', '" (until "YYYY-MM-DD")"')
                || coalesce((SELECT '; later: ' || n.name FROM edges r JOIN entities n ON n.id = r.to_id
                             WHERE r.id = e.replaced_by), '')
           ELSE '' END, NULL::text[], said.speakers
FROM unnest(%(from_ids)s::uuid[], %(to_ids)s::uuid[], %(types)s::text[]) AS wanted (from_id, to_id, type)
JOIN edges e ON e.from_id = wanted.from_id AND e.to_id = wanted.to_id AND e.type = wanted.type
JOIN entities s ON s.id = e.from_id
JOIN entities o ON o.id = e.to_id
CROSS JOIN LATERAL (
    SELECT coalesce((SELECT lower(h) FROM unnest(e.held_before) AS h WHERE h @> at.moment),
                    CASE WHEN e.valid_from <= at.moment THEN e.valid_from END, '-infinity') AS since
    FROM (SELECT coalesce(%(moment)s::timestamptz, now()) AS moment) at
) held
CROSS JOIN LATERAL (
    SELECT max(coalesce(n.expires_at, 'infinity')) AS until, min(v.seen_at) FILTER (WHERE v.seen_at >= held.since) AS since
    FROM edge_evidence v
    LEFT JOIN notes n ON n.id = v.memory_id
    WHERE v.edge_id = e.id
      AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
      AND (%(user_id)s::text IS NULL OR v.user_id IS NULL OR v.user_id = %(user_id)s)
      AND (NOT %(shared_only)s OR v.user_id IS NULL)
) told
CROSS JOIN LATERAL (
    -- A note has the names of today: where messages tell, theirs count, each of its own time. What is archived tells nothing.
    SELECT CASE WHEN bool_and(who.name IS NOT NULL) THEN (array_agg(DISTINCT who.name))[:%(most_speakers)s] END AS speakers
    FROM (
        SELECT m.id IS NOT NULL AS is_message, n.speakers, bool_or(m.id IS NOT NULL) OVER () AS has_messages,
               CASE WHEN m.role <> 'tool' AND NOT m.is_summary THEN m.name END AS name
        FROM (
            SELECT v.memory_id FROM edge_evidence v
            WHERE v.edge_id = e.id AND v.seen_at <= coalesce(%(moment)s::timestamptz, 'infinity')
              AND (%(user_id)s::text IS NULL OR v.user_id IS NULL OR v.user_id = %(user_id)s)
              AND (NOT %(shared_only)s OR v.user_id IS NULL)
            ORDER BY v.seen_at DESC, v.source
            LIMIT 32
        ) stated
        LEFT JOIN notes n ON n.id = stated.memory_id
        LEFT JOIN messages m ON m.id = stated.memory_id
        WHERE stated.memory_id IS NULL OR n.id IS NOT NULL OR m.id IS NOT NULL
    ) told_by
    CROSS JOIN LATERAL unnest(
        CASE WHEN is_message OR told_by.speakers IS NULL THEN ARRAY[told_by.name]
             WHEN has_messages THEN '{}'
             ELSE told_by.speakers END
    ) AS who (name)
) said
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND e.strength * e.standing >= %(least_strength)s
  AND told.until IS NOT NULL
  AND /*filters*/ true

-- name: reached_entities
-- Those that a caller stated: everybody may see them.
SELECT 4, n.id, n.first_seen_at, NULL::integer, NULL::integer, n.confidence * n.standing, 0.5, NULL, NULL::timestamptz,
       'warm', NULL::timestamptz, NULL::float8, NULL::uuid, NULL::uuid, n.name, n.type, NULL, n.aliases,
       NULL::text[]
FROM entities n
WHERE n.id = ANY(%(ids)s) AND n.is_asserted
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND /*filters*/ true

-- name: find_edges
-- Edges at these entities that have not faded, hold, and whose evidence the query may see, the surest first, without
-- those that rest on expiring notes alone. One that took the place of another that the query may see says since when:
-- since the first evidence of it that the query may see.
SELECT s.name AS subject, e.type, o.name || coalesce((
           SELECT to_char(told.since AT TIME ZONE 'UTC', '" (since "YYYY-MM-DD")"')
           FROM (
               SELECT CASE WHEN bool_and(seen.is_shown) IS NOT FALSE THEN e.valid_from
                           ELSE min(v.seen_at) FILTER (WHERE seen.is_shown) END AS since
               FROM edge_evidence v
               CROSS JOIN LATERAL (
                   SELECT v.user_id IS NULL OR NOT %(shared_only)s
                          AND (%(user_id)s::text IS NULL OR v.user_id = %(user_id)s) AS is_shown
               ) seen
               WHERE v.edge_id = e.id AND v.seen_at >= e.valid_from
           ) told
           WHERE (%(moment)s::timestamptz IS NULL OR told.since <= %(moment)s)
             AND EXISTS (SELECT FROM edges b JOIN edge_evidence v ON v.edge_id = b.id
                         WHERE b.from_id = e.from_id AND b.replaced_by = e.id
                           AND (%(user_id)s::text IS NULL OR v.user_id IS NULL OR v.user_id = %(user_id)s)
                           AND (NOT %(shared_only)s OR v.user_id IS NULL))), '') AS object
FROM edges e
JOIN entities s ON s.id = e.from_id
JOIN entities o ON o.id = e.to_id
WHERE (e.from_id = ANY(%(ids)s) OR e.to_id = ANY(%(ids)s))
  AND e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND e.strength * e.standing >= %(least_strength)s
  AND (((e.valid_to IS NULL OR e.valid_to > coalesce(%(moment)s::timestamptz, now()))
        AND (%(moment)s::timestamptz IS NULL OR coalesce(e.valid_from, e.first_seen_at) <= %(moment)s))
       OR e.held_before @> coalesce(%(moment)s::timestamptz, now()))
  AND EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id
              AND (%(user_id)s::text IS NULL OR v.user_id IS NULL OR v.user_id = %(user_id)s)
              AND (NOT %(shared_only)s OR v.user_id IS NULL)
              AND NOT EXISTS (SELECT FROM notes n WHERE n.id = v.memory_id AND n.expires_at IS NOT NULL))
  AND /*filters*/ true
ORDER BY e.strength * e.standing * e.confidence DESC, e.id
LIMIT %(limit)s

-- name: find_mentioned
-- Entities that each of these memories mentions, the rarest first.
SELECT l.from_id, l.to_id
FROM memory_links l
WHERE l.from_id = ANY(%(ids)s) AND l.kind IN ('about', 'mentions')
  AND l.tenant = %(tenant)s AND l.workspace = %(workspace)s AND l.namespace = %(namespace)s
ORDER BY l.from_id, (SELECT count(*) FROM (SELECT FROM memory_links m WHERE m.to_id = l.to_id LIMIT 1000) counted), l.to_id

-- name: list_facts
-- Edges from these entities that have not faded and whose evidence the reader may see, once for each time in which
-- they hold; for the reader it begins with the first evidence of it that the reader may see.
SELECT e.id, s.name AS subject, e.type AS relation, o.name AS object, e.confidence,
       seen.valid_from, held.valid_to, e.recorded_at, held.replaced_by
FROM edges e
CROSS JOIN LATERAL (
    SELECT coalesce(e.valid_from, e.first_seen_at) AS valid_from, e.valid_to, e.replaced_by
    UNION ALL
    SELECT lower(h), upper(h), NULL FROM unnest(e.held_before) AS h
) held
CROSS JOIN LATERAL (
    SELECT CASE WHEN count(*) FILTER (WHERE v.user_id IS DISTINCT FROM %(user_id)s AND v.user_id IS NOT NULL) = 0
                  OR %(user_id)s::text IS NULL
                THEN held.valid_from
                ELSE min(v.seen_at) FILTER (WHERE v.user_id IS NULL OR v.user_id = %(user_id)s) END AS valid_from
    FROM edge_evidence v
    WHERE v.edge_id = e.id AND v.seen_at >= held.valid_from AND (held.valid_to IS NULL OR v.seen_at < held.valid_to)
) seen
JOIN entities s ON s.id = e.from_id
JOIN entities o ON o.id = e.to_id
WHERE /*chosen*/ e.from_id = ANY(%(ids)s) AND (%(relation)s::text IS NULL OR e.type = %(relation)s)
  AND e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND e.strength * e.standing >= %(least_strength)s
  AND seen.valid_from IS NOT NULL
  AND (%(as_of)s::timestamptz IS NULL
       OR (seen.valid_from <= %(as_of)s AND (held.valid_to IS NULL OR held.valid_to > %(as_of)s)))
  AND EXISTS (SELECT FROM edge_evidence v LEFT JOIN notes n ON n.id = v.memory_id
              WHERE v.edge_id = e.id
                AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
                AND (%(user_id)s::text IS NULL OR v.user_id IS NULL OR v.user_id = %(user_id)s))
  AND (%(after_time)s::timestamptz IS NULL OR seen.valid_from < %(after_time)s
       OR (seen.valid_from = %(after_time)s AND e.id > %(after_id)s::uuid))
ORDER BY seen.valid_from DESC, e.id
LIMIT %(limit)s
