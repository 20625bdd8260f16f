-- By the vectors of one generation: those in the rows, and those that were made beside them.
SELECT id, 1 - distance AS cosine FROM (
    (SELECT id, embedding <=> %(embedding)s AS distance
     FROM entities
     WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
       AND generation = %(generation)s
     ORDER BY embedding <=> %(embedding)s
     LIMIT %(limit)s)
    UNION ALL
    (SELECT entity_id, embedding <=> %(embedding)s
     FROM entity_embeddings
     WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
       AND generation = %(generation)s
     ORDER BY embedding <=> %(embedding)s
     LIMIT %(limit)s)
) nearest
WHERE 1 - distance >= %(min_similarity)s
ORDER BY distance, id
LIMIT %(limit)s
