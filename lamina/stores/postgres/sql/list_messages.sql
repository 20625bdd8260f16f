SELECT id, session_id, user_id, agent_id, position, role, name, ref, content, metadata, occurred_at
FROM messages
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s
ORDER BY position
LIMIT %(limit)s OFFSET %(offset)s
