INSERT INTO note_chunks (
    note_id, chunk, tenant, workspace, namespace, text_start, text_end, tsv, generation, embedding
) VALUES (
    %(id)s, %(chunk)s, %(tenant)s, %(workspace)s, %(namespace)s, %(text_start)s, %(text_end)s,
    to_tsvector('lamina', %(words)s), %(generation)s, %(embedding)s
)
