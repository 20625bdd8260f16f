SELECT id, tenant, workspace, namespace, user_id, session_id, occurred_at, name, content
FROM messages
WHERE id = ANY(%(ids)s)
