UPDATE procedures
SET trigger_key = %(trigger_key)s, tsv = to_tsvector('lamina', %(words)s), generation = %(generation)s,
    embedding = %(embedding)s
WHERE id = %(id)s
