UPDATE embedding_generations SET is_active = true, retired_at = NULL, activations = activations + 1
WHERE generation = %(generation)s
RETURNING generation, model, dimension, normalised, created_at, activations, thresholds
