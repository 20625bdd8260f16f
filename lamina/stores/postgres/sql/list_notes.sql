SELECT id, workspace, namespace, user_id, agent_id, session_id, category, content, importance, confidence, tags,
       metadata, source, version, hits, event_at, last_hit_at, created_at, updated_at
FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
  AND (%(category)s::text IS NULL OR category = %(category)s)
  AND tags @> %(tags)s::text[]
  AND (%(since)s::timestamptz IS NULL OR event_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR event_at < %(until)s)
ORDER BY event_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s
