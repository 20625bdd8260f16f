INSERT INTO passage_chunks (
    passage_id, chunk, text_start, text_end, tenant, workspace, namespace, user_id, tsv, generation, embedding
) VALUES (
    %(id)s, %(chunk)s, %(text_start)s, %(text_end)s, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s,
    to_tsvector('lamina', %(words)s), %(generation)s, %(embedding)s
)
