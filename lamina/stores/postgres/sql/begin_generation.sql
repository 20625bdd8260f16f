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
