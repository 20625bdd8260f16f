-- These passages, each with the cosine of its chunk nearest to the query.
SELECT p.id, p.position, p.content, p.heading, p.page, d.id AS document_id, d.title, d.key, d.media_type, d.user_id,
       d.agent_id, d.tags, d.metadata, d.source, d.event_at,
       coalesce((SELECT 1 - min(c.embedding <=> %(embedding)s::vector)
                 FROM passage_chunks c WHERE c.passage_id = p.id AND c.generation = %(generation)s), 0)::float8 AS cosine
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE p.id = ANY(%(ids)s)
  AND d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR d.user_id IS NULL OR d.user_id = %(user_id)s)
  AND /*filters*/ true
