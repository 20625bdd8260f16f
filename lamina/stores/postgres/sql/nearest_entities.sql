SELECT id, 1 - distance AS cosine FROM (
    SELECT id, embedding <=> %(embedding)s AS distance
    FROM entities
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND generation = %(generation)s
    ORDER BY embedding <=> %(embedding)s
    LIMIT %(limit)s
) nearest
WHERE 1 - distance >= %(min_similarity)s
ORDER BY distance, id
