-- A document of the same key is replaced as a whole; an equal one stays as it is and returns no row.
INSERT INTO documents (
    id, tenant, workspace, namespace, user_id, agent_id, key, title, media_type, content, content_hash, characters,
    tags, metadata, source, event_at, created_at, updated_at
) VALUES (
    %(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s, %(agent_id)s, %(key)s, %(title)s, %(media_type)s,
    %(content)s, %(content_hash)s, %(characters)s, %(tags)s, %(metadata)s, %(source)s, %(event_at)s, %(now)s, %(now)s
)
ON CONFLICT (tenant, workspace, namespace, user_id, key) DO UPDATE
SET agent_id = excluded.agent_id, title = excluded.title, media_type = excluded.media_type,
    content = excluded.content, content_hash = excluded.content_hash, characters = excluded.characters,
    tags = excluded.tags, metadata = excluded.metadata, source = excluded.source, event_at = excluded.event_at,
    version = documents.version + 1, updated_at = excluded.updated_at
WHERE documents.content_hash <> excluded.content_hash
RETURNING id, version
