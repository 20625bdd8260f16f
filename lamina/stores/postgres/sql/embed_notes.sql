-- Vectors of a generation for notes that still say the same; only a warm one's chunks have words.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(chunks)s::integer[], %(starts)s::integer[],
                         %(ends)s::integer[], %(embeddings)s::vector[], %(words)s::text[])
           AS m (id, guard, chunk, text_start, text_end, embedding, words)
), locked AS (
    SELECT n.id, n.tenant, n.workspace, n.namespace, n.temperature
    FROM notes n
    WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
      AND n.deleted_at IS NULL
      AND n.id = ANY(%(ids)s) AND n.id IN (SELECT made.id FROM made WHERE made.guard = n.content_hash)
    ORDER BY n.id
    FOR SHARE
), inserted AS (
    INSERT INTO note_chunks (
        note_id, chunk, tenant, workspace, namespace, text_start, text_end, tsv, generation, embedding)
    SELECT l.id, m.chunk, l.tenant, l.workspace, l.namespace, m.text_start, m.text_end,
           CASE WHEN l.temperature = 'warm' THEN to_tsvector('lamina', m.words) END, %(generation)s, m.embedding
    FROM locked l
    JOIN made m ON m.id = l.id
    ON CONFLICT DO NOTHING
    RETURNING note_id
)
SELECT DISTINCT note_id AS id FROM inserted
