INSERT INTO sessions AS s (tenant, workspace, namespace, session_id)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s, %(session_id)s)
ON CONFLICT (tenant, workspace, namespace, session_id) DO UPDATE SET next_position = s.next_position
RETURNING next_position
