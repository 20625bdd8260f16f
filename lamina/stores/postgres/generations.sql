-- name: insert_generation
-- The first model inserts it; a later try uses up no number.
INSERT INTO embedding_generations (model, dimension, normalised, thresholds)
SELECT %(model)s, %(dimension)s, %(normalised)s, %(thresholds)s
WHERE NOT EXISTS (SELECT FROM embedding_generations WHERE is_active)
ON CONFLICT DO NOTHING

-- name: lock_generations
-- The active generation, and that of a model if it exists.
SELECT generation, model, dimension, normalised, created_at, activations, thresholds, state
FROM embedding_generations
WHERE is_active OR (model = %(model)s AND dimension = %(dimension)s AND normalised = %(normalised)s)
ORDER BY generation
FOR UPDATE

-- name: retire_generation
UPDATE embedding_generations SET is_active = false, retired_at = clock_timestamp() WHERE is_active

-- name: activate_generation
UPDATE embedding_generations SET is_active = true, retired_at = NULL, activations = activations + 1
WHERE generation = %(generation)s
RETURNING generation, model, dimension, normalised, created_at, activations, thresholds

-- name: active_generation
SELECT generation, model, dimension, normalised, created_at, activations, thresholds
FROM embedding_generations WHERE is_active

-- name: write_thresholds
UPDATE embedding_generations SET thresholds = %(thresholds)s WHERE generation = %(generation)s

-- name: list_generations
SELECT generation, model, dimension, normalised, created_at, activations, thresholds, state, retired_at
FROM embedding_generations
ORDER BY generation

-- name: begin_generation
-- A generation to build beside the active one; a retired one is built on. The active one stays active.
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
