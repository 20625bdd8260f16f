INSERT INTO messages (
    id, tenant, workspace, namespace, session_id, user_id, agent_id, swarm_id,
    position, role, name, ref, content, content_hash, metadata, occurred_at
) VALUES (
    %(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(session_id)s, %(user_id)s, %(agent_id)s, %(swarm_id)s,
    %(position)s, %(role)s, %(name)s, %(ref)s, %(content)s, %(content_hash)s, %(metadata)s, %(occurred_at)s
)
