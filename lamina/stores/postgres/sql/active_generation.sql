SELECT generation, model, dimension, normalised, created_at FROM embedding_generations WHERE is_active
