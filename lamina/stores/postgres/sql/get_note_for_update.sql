SELECT id, workspace, namespace, user_id, agent_id, session_id, category, content, importance, confidence, tags,
       metadata, source, version, hits, event_at, last_hit_at, temperature, weight, expires_at, created_at,
       updated_at
FROM notes
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())
FOR UPDATE
