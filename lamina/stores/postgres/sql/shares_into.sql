SELECT id, from_workspace, from_namespace, to_workspace, segment, tags, label, created_at, expires_at, revoked_at
FROM shares
WHERE tenant = %(tenant)s AND to_workspace = %(workspace)s AND revoked_at IS NULL
  AND (expires_at IS NULL OR expires_at > %(now)s)
ORDER BY id
