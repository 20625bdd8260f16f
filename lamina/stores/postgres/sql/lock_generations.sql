-- The active generation and the one of a model, if somebody builds or built it.
SELECT generation, model, dimension, normalised, created_at, activations, thresholds, state
FROM embedding_generations
WHERE is_active OR (model = %(model)s AND dimension = %(dimension)s AND normalised = %(normalised)s)
ORDER BY generation
FOR UPDATE
