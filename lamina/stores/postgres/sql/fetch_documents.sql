SELECT p.id, wanted.chunk, p.position, p.content, p.heading, p.page, d.id AS document_id, d.title, d.key,
       d.media_type, d.user_id, d.agent_id, d.tags, d.metadata, d.source, d.event_at
FROM unnest(%(ids)s::uuid[], %(chunks)s::integer[]) AS wanted (id, chunk)
JOIN passages p ON p.id = wanted.id
JOIN documents d ON d.id = p.document_id
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR d.user_id IS NULL OR d.user_id = %(user_id)s)
  AND /*filters*/ true
