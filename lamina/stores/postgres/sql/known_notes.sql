SELECT id, content_hash FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND user_id IS NOT DISTINCT FROM %(user_id)s
  AND content_hash = ANY(%(hashes)s) AND deleted_at IS NULL
