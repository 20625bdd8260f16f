UPDATE procedures SET deleted_at = %(now)s
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL
RETURNING workspace, namespace
