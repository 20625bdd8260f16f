UPDATE procedures
SET trigger = %(trigger)s, action = %(action)s, content_hash = %(content_hash)s, tags = %(tags)s,
    metadata = %(metadata)s, updated_at = %(now)s
WHERE id = %(id)s
RETURNING id, workspace, namespace, agent_id, trigger, action, tags, metadata, source, strength, successes, failures,
       created_at, updated_at, last_used_at
