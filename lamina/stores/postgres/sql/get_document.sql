SELECT d.id, d.workspace, d.namespace, d.user_id, d.agent_id, d.key, d.title, d.media_type, d.characters, d.tags,
       d.metadata, d.source, d.version, d.event_at, d.created_at, d.updated_at,
       CASE WHEN %(with_content)s THEN d.content END AS content,
       (SELECT count(*) FROM passages p WHERE p.document_id = d.id) AS passages
FROM documents d
WHERE d.id = %(id)s AND d.tenant = %(tenant)s
