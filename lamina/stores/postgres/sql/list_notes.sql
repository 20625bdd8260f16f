SELECT id, workspace, namespace, user_id, agent_id, session_id, category, content, importance, confidence, tags,
       metadata, source, version, hits, event_at, last_hit_at, temperature, weight, expires_at, created_at,
       updated_at
FROM notes n
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())
  AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
  AND /*filters*/ true
ORDER BY event_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s
