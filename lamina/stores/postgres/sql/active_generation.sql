SELECT generation, model, dimension, normalised FROM embedding_generations WHERE is_active
