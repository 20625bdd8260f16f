-- The active generation of vectors, and how many are being built.
SELECT max(generation) FILTER (WHERE state = 'active') AS active,
       count(*) FILTER (WHERE state = 'building') AS building
FROM embedding_generations
