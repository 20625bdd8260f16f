SELECT d.id, d.workspace, d.namespace, d.user_id, d.agent_id, d.key, d.title, d.media_type, d.characters, d.tags,
       d.metadata, d.source, d.version, d.event_at, d.created_at, d.updated_at,
       NULL AS content, (SELECT count(*) FROM passages p WHERE p.document_id = d.id) AS passages
FROM documents d
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR d.user_id IS NULL OR d.user_id = %(user_id)s)
  AND (%(key)s::text IS NULL OR d.key = %(key)s)
  AND /*filters*/ true
ORDER BY d.event_at DESC, d.id DESC
LIMIT %(limit)s OFFSET %(offset)s
