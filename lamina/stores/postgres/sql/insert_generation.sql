INSERT INTO embedding_generations (model, dimension, normalised)
VALUES (%(model)s, %(dimension)s, %(normalised)s)
ON CONFLICT DO NOTHING
