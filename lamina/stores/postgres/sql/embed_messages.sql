-- Vectors of a generation for messages that are still there, where each belongs now.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(chunks)s::integer[], %(starts)s::integer[],
                         %(ends)s::integer[], %(embeddings)s::vector[])
           AS m (id, guard, chunk, text_start, text_end, embedding)
), locked AS (
    SELECT m.id, m.tenant, m.workspace, m.namespace, m.session_id, m.user_id, m.occurred_at, m.compacted_at
    FROM messages m
    WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
      AND m.id = ANY(%(ids)s) AND m.id IN (SELECT made.id FROM made WHERE made.guard = m.content_hash)
    ORDER BY m.id
    FOR SHARE
), placed AS (
    SELECT l.*, made.chunk, made.text_start, made.text_end, made.embedding FROM locked l JOIN made ON made.id = l.id
), astray AS (
    -- Left by a compaction, or the undo of one, that went on at the same time.
    DELETE FROM message_chunks c USING locked l
    WHERE c.message_id = l.id AND c.generation = %(generation)s AND l.compacted_at IS NOT NULL
), astray_too AS (
    DELETE FROM compacted_chunks c USING locked l
    WHERE c.message_id = l.id AND c.generation = %(generation)s AND l.compacted_at IS NULL
), live AS (
    INSERT INTO message_chunks (
        message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
        generation, embedding)
    SELECT id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
           %(generation)s, embedding
    FROM placed WHERE compacted_at IS NULL
    ON CONFLICT DO NOTHING
    RETURNING message_id
), compacted AS (
    INSERT INTO compacted_chunks (
        message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
        generation, embedding)
    SELECT id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
           %(generation)s, embedding
    FROM placed WHERE compacted_at IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING message_id
)
SELECT message_id AS id FROM live UNION SELECT message_id FROM compacted
