SELECT id, from_workspace, from_namespace, to_workspace, segment, tags, label, created_at, expires_at, revoked_at
FROM shares
WHERE id = %(id)s AND tenant = %(tenant)s
