-- These messages, each at its chunk nearest to the query.
SELECT DISTINCT ON (m.id)
       m.id, m.session_id, m.user_id, m.agent_id, m.role, m.name, m.ref, m.content, m.metadata, m.occurred_at,
       c.chunk, c.text_start, c.text_end, coalesce(1 - (c.embedding <=> %(embedding)s::vector), 0)::float8 AS cosine
FROM messages m
JOIN message_chunks c ON c.message_id = m.id AND c.generation = %(generation)s
WHERE m.id = ANY(%(ids)s) AND m.compacted_at IS NULL
  AND m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
  AND (%(session_id)s::text IS NULL OR m.session_id = %(session_id)s)
  AND (%(user_id)s::text IS NULL OR m.user_id IS NULL OR m.user_id = %(user_id)s)
  AND /*filters*/ true
ORDER BY m.id, cosine DESC, c.chunk
