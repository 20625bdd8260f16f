SELECT id FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())
  AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
  AND id = ANY(%(ids)s)
ORDER BY id
FOR SHARE
