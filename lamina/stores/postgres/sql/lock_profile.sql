INSERT INTO profiles (tenant, workspace, namespace, user_id, document, version)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s, '{}', 0)
ON CONFLICT (tenant, workspace, namespace, user_id) DO UPDATE SET version = profiles.version
RETURNING document, version
