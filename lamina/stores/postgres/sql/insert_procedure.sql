-- The row that is there already is returned as it is: the update changes nothing, and waits for whoever deletes it.
INSERT INTO procedures (
    id, tenant, workspace, namespace, agent_id, trigger, trigger_key, action, content_hash, tags, metadata, source,
    strength, tsv, generation, embedding, created_at, updated_at
) VALUES (
    %(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(agent_id)s, %(trigger)s, %(trigger_key)s, %(action)s,
    %(content_hash)s, %(tags)s, %(metadata)s, %(source)s, %(strength)s, to_tsvector('lamina', %(words)s),
    %(generation)s, %(embedding)s, %(now)s, %(now)s
)
ON CONFLICT (tenant, workspace, namespace, content_hash) WHERE deleted_at IS NULL
DO UPDATE SET tenant = excluded.tenant
RETURNING id
