SELECT generation, model, dimension, normalised, created_at, activations, thresholds
FROM embedding_generations WHERE is_active
