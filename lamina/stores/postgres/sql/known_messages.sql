SELECT id, content_hash, position FROM messages
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s
  AND content_hash = ANY(%(hashes)s)
