INSERT INTO notes (
    id, tenant, workspace, namespace, user_id, agent_id, session_id, swarm_id, category, content, content_hash,
    importance, confidence, tags, metadata, source, event_at, expires_at, created_at, updated_at,
    last_hit_at, temperature_changed_at
) VALUES (
    %(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s, %(agent_id)s, %(session_id)s, %(swarm_id)s,
    %(category)s, %(content)s, %(content_hash)s, %(importance)s, %(confidence)s, %(tags)s, %(metadata)s, %(source)s,
    %(event_at)s, %(expires_at)s, %(now)s, %(now)s, %(now)s, %(now)s
)
ON CONFLICT (tenant, workspace, namespace, user_id, content_hash) WHERE deleted_at IS NULL DO NOTHING
RETURNING id
