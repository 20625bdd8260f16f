SELECT id, session_id, user_id, agent_id, role, name, ref, content, metadata, occurred_at
FROM messages
WHERE id = ANY(%(ids)s)
  AND tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
  AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
  AND (%(since)s::timestamptz IS NULL OR occurred_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR occurred_at < %(until)s)
