-- Which of these words some name begins with; one look into the index for each word.
SELECT said.word
FROM unnest(%(words)s::text[]) AS said (word)
CROSS JOIN LATERAL (
    SELECT FROM entity_names
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND sha256_of(split_part(key, ' ', 1)) = sha256_of(said.word)
    LIMIT 1
) AS known
