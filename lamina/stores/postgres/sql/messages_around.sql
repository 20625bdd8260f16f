-- The wanted messages and those right before and after them, each at its chunk nearest to the query.
SELECT DISTINCT ON (m.id)
       m.id, m.session_id, m.user_id, m.agent_id, m.position, m.role, m.name, m.ref, m.content, m.metadata, m.occurred_at,
       c.chunk, c.text_start, c.text_end,
       coalesce(1 - (c.embedding <=> %(embedding)s::vector), 0)::float8 AS cosine
FROM messages wanted
JOIN messages m ON m.tenant = wanted.tenant AND m.workspace = wanted.workspace AND m.namespace = wanted.namespace
               AND m.session_id = wanted.session_id
               AND m.position IN (wanted.position - 1, wanted.position, wanted.position + 1)
JOIN message_chunks c ON c.message_id = m.id AND c.generation = %(generation)s
WHERE wanted.id = ANY(%(ids)s)
  AND m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
  AND (%(session_id)s::text IS NULL OR m.session_id = %(session_id)s)
  AND (%(user_id)s::text IS NULL OR m.user_id IS NULL OR m.user_id = %(user_id)s)
  AND /*filters*/ true
ORDER BY m.id, cosine DESC, c.chunk
