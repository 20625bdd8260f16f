-- The first model to come; another try takes no number.
INSERT INTO embedding_generations (model, dimension, normalised, thresholds)
SELECT %(model)s, %(dimension)s, %(normalised)s, %(thresholds)s
WHERE NOT EXISTS (SELECT FROM embedding_generations WHERE is_active)
ON CONFLICT DO NOTHING
