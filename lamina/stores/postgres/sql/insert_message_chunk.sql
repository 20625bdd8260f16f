INSERT INTO message_chunks (
    message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at,
    text_start, text_end, generation, embedding
) VALUES (
    %(id)s, %(chunk)s, %(tenant)s, %(workspace)s, %(namespace)s, %(session_id)s, %(user_id)s, %(occurred_at)s,
    %(text_start)s, %(text_end)s, %(generation)s, %(embedding)s
)
