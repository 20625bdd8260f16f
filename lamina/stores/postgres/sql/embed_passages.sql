-- Vectors of a generation for passages that are still there.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(chunks)s::integer[], %(starts)s::integer[],
                         %(ends)s::integer[], %(embeddings)s::vector[], %(words)s::text[])
           AS m (id, guard, chunk, text_start, text_end, embedding, words)
), locked AS (
    SELECT p.id, p.tenant, p.workspace, p.namespace, p.user_id
    FROM passages p
    JOIN documents d ON d.id = p.document_id
    WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
      AND p.id = ANY(%(ids)s) AND p.id IN (SELECT made.id FROM made WHERE made.guard = d.content_hash)
    ORDER BY p.id
    FOR KEY SHARE OF p
), inserted AS (
    INSERT INTO passage_chunks (
        passage_id, chunk, text_start, text_end, tenant, workspace, namespace, user_id, tsv, generation, embedding)
    SELECT l.id, m.chunk, m.text_start, m.text_end, l.tenant, l.workspace, l.namespace, l.user_id,
           to_tsvector('lamina', m.words), %(generation)s, m.embedding
    FROM locked l
    JOIN made m ON m.id = l.id
    ON CONFLICT DO NOTHING
    RETURNING passage_id
)
SELECT DISTINCT passage_id AS id FROM inserted
