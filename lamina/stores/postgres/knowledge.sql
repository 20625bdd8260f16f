-- name: nearest_entities
-- By the vectors of one generation: those in the rows, and those in a table beside them.
SELECT id, 1 - distance AS cosine FROM (
    (SELECT id, embedding <=> %(embedding)s AS distance
     FROM entities
     WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
       AND generation = %(generation)s
     ORDER BY embedding <=> %(embedding)s
     LIMIT %(limit)s)
    UNION ALL
    (SELECT entity_id, embedding <=> %(embedding)s
     FROM entity_embeddings
     WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
       AND generation = %(generation)s
     ORDER BY embedding <=> %(embedding)s
     LIMIT %(limit)s)
) nearest
WHERE 1 - distance >= %(min_similarity)s
ORDER BY distance, id
LIMIT %(limit)s

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
WHERE n.id = ANY(%(ids)s)
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND told.until IS NOT NULL
  AND /*filters*/ true
ORDER BY n.id

-- name: read_edges
-- Edges (from, to, type) that have not faded and whose evidence the query may see. An edge expires with the last
-- note that it rests on.
SELECT e.id, e.from_id, e.to_id, e.type, e.strength * e.standing AS strength, e.confidence, e.first_seen_at,
       e.last_seen_at, s.name AS subject, o.name AS object, nullif(told.until, 'infinity') AS expires_at
FROM unnest(%(from_ids)s::uuid[], %(to_ids)s::uuid[], %(types)s::text[]) AS wanted (from_id, to_id, type)
JOIN edges e ON e.from_id = wanted.from_id AND e.to_id = wanted.to_id AND e.type = wanted.type
JOIN entities s ON s.id = e.from_id
JOIN entities o ON o.id = e.to_id
CROSS JOIN LATERAL (
    SELECT max(coalesce(n.expires_at, 'infinity')) AS until
    FROM edge_evidence v
    LEFT JOIN notes n ON n.id = v.memory_id
    WHERE v.edge_id = e.id
      AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
      AND (%(user_id)s::text IS NULL OR v.user_id IS NULL OR v.user_id = %(user_id)s)
      AND (NOT %(shared_only)s OR v.user_id IS NULL)
) told
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND e.strength * e.standing >= %(least_strength)s
  AND told.until IS NOT NULL
  AND /*filters*/ true
ORDER BY e.id

-- name: find_edges
-- Edges at these entities that have not faded and whose evidence the query may see, the surest first, without those
-- that rest on expiring notes alone.
SELECT e.id, e.from_id, e.to_id, e.type, e.strength * e.standing AS strength, e.confidence, e.first_seen_at,
       e.last_seen_at, s.name AS subject, o.name AS object, NULL::timestamptz AS expires_at
FROM edges e
JOIN entities s ON s.id = e.from_id
JOIN entities o ON o.id = e.to_id
WHERE (e.from_id = ANY(%(ids)s) OR e.to_id = ANY(%(ids)s))
  AND e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND e.strength * e.standing >= %(least_strength)s
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
