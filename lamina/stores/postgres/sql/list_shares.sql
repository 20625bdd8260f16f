-- Both directions.
SELECT id, from_workspace, from_namespace, to_workspace, segment, tags, label, created_at, expires_at, revoked_at
FROM shares
WHERE tenant = %(tenant)s AND (from_workspace = %(workspace)s OR to_workspace = %(workspace)s)
ORDER BY created_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s
