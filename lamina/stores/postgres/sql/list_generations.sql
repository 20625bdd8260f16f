SELECT generation, model, dimension, normalised, created_at, activations, thresholds, state, retired_at
FROM embedding_generations
ORDER BY generation
