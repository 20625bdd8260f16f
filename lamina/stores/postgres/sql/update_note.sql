UPDATE notes
SET category = %(category)s, content = %(content)s, content_hash = %(content_hash)s, importance = %(importance)s,
    confidence = %(confidence)s, tags = %(tags)s, metadata = %(metadata)s, event_at = %(event_at)s,
    expires_at = %(expires_at)s, weight = 1,
    version = version + 1, updated_at = %(now)s, last_hit_at = greatest(last_hit_at, %(now)s)
WHERE id = %(id)s
RETURNING id, workspace, namespace, user_id, agent_id, session_id, category, content, importance, confidence, tags,
          metadata, source, version, hits, event_at, last_hit_at, temperature, weight, expires_at, created_at, updated_at
