-- name: vector_dimension
SELECT atttypmod AS dimension FROM pg_attribute
WHERE attrelid = 'message_chunks'::regclass AND attname = 'embedding'

-- name: insert_generation
-- The first model to come; another try takes no number.
INSERT INTO embedding_generations (model, dimension, normalised, thresholds)
SELECT %(model)s, %(dimension)s, %(normalised)s, %(thresholds)s
WHERE NOT EXISTS (SELECT FROM embedding_generations WHERE is_active)
ON CONFLICT DO NOTHING

-- name: lock_generations
-- The active generation and the one of a model, if somebody builds or built it.
SELECT generation, model, dimension, normalised, created_at, activations, thresholds, state
FROM embedding_generations
WHERE is_active OR (model = %(model)s AND dimension = %(dimension)s AND normalised = %(normalised)s)
ORDER BY generation
FOR UPDATE

-- name: count_unembedded
-- What was written longer than a while ago and lacks vectors of a generation, of everybody. The ids of entities tell
-- their time (UUID version 7).
WITH since AS (
    SELECT at, (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid AS id
    FROM (SELECT clock_timestamp() - %(grace)s::interval AS at) AS moment
)
SELECT (SELECT count(*) FROM messages m
        WHERE m.created_at < since.at
          AND CASE WHEN m.compacted_at IS NULL
              THEN NOT EXISTS (SELECT FROM message_chunks c
                               WHERE c.message_id = m.id AND c.generation = %(generation)s)
              ELSE NOT EXISTS (SELECT FROM compacted_chunks c
                               WHERE c.message_id = m.id AND c.generation = %(generation)s) END) AS messages,
       (SELECT count(*) FROM notes n
        WHERE n.deleted_at IS NULL AND n.updated_at < since.at
          AND NOT EXISTS (SELECT FROM note_chunks c WHERE c.note_id = n.id AND c.generation = %(generation)s)) AS notes,
       (SELECT count(*) FROM passages p JOIN documents d ON d.id = p.document_id
        WHERE d.updated_at < since.at
          AND NOT EXISTS (SELECT FROM passage_chunks c
                          WHERE c.passage_id = p.id AND c.generation = %(generation)s)) AS passages,
       (SELECT count(*) FROM entities e
        WHERE e.id < since.id AND e.generation <> %(generation)s
          AND NOT EXISTS (SELECT FROM entity_embeddings o
                          WHERE o.entity_id = e.id AND o.generation = %(generation)s
                            AND o.text_hash = sha256_of(e.name))) AS entities,
       (SELECT count(*) FROM procedures p
        WHERE p.deleted_at IS NULL AND p.updated_at < since.at AND p.generation <> %(generation)s
          AND NOT EXISTS (SELECT FROM procedure_embeddings o
                          WHERE o.procedure_id = p.id AND o.generation = %(generation)s
                            AND o.text_hash = sha256_of(p.trigger))) AS procedures
FROM since

-- name: retire_generation
UPDATE embedding_generations SET is_active = false, retired_at = clock_timestamp() WHERE is_active

-- name: activate_generation
UPDATE embedding_generations SET is_active = true, retired_at = NULL, activations = activations + 1
WHERE generation = %(generation)s
RETURNING generation, model, dimension, normalised, created_at, activations, thresholds

-- name: active_generation
SELECT generation, model, dimension, normalised, created_at, activations, thresholds
FROM embedding_generations WHERE is_active

-- name: keep_thresholds
UPDATE embedding_generations SET thresholds = %(thresholds)s WHERE generation = %(generation)s

-- name: list_generations
SELECT generation, model, dimension, normalised, created_at, activations, thresholds, state, retired_at
FROM embedding_generations
ORDER BY generation

-- name: begin_generation
-- A model's generation, to be built beside the active one; a retired one is built on. The active one stays as it is.
WITH known AS (
    UPDATE embedding_generations SET retired_at = NULL
    WHERE model = %(model)s AND dimension = %(dimension)s AND normalised = %(normalised)s
    RETURNING generation
), begun AS (
    INSERT INTO embedding_generations (model, dimension, normalised, thresholds, is_active, activations)
    SELECT %(model)s, %(dimension)s, %(normalised)s, %(thresholds)s, false, 0 WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT (model, dimension, normalised) DO UPDATE SET retired_at = NULL
    RETURNING generation
)
SELECT generation FROM known UNION ALL SELECT generation FROM begun
