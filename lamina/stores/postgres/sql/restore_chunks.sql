-- A cold note's chunks have no words.
INSERT INTO note_chunks (
    note_id, chunk, tenant, workspace, namespace, text_start, text_end, tsv, generation, embedding
)
SELECT n.id, c.chunk, n.tenant, n.workspace, n.namespace, c.text_start, c.text_end, NULL, %(generation)s, c.embedding
FROM unnest(%(ids)s::uuid[], %(chunks)s::integer[], %(starts)s::integer[], %(ends)s::integer[],
            %(embeddings)s::vector[]) AS c (id, chunk, text_start, text_end, embedding)
JOIN notes n ON n.id = c.id
