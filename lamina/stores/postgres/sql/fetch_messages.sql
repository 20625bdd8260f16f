SELECT m.id, m.session_id, m.user_id, m.agent_id, m.role, m.name, m.ref, m.content, m.metadata, m.occurred_at,
       c.chunk, c.text_start, c.text_end
FROM unnest(%(ids)s::uuid[], %(chunks)s::integer[]) AS wanted (id, chunk)
JOIN messages m ON m.id = wanted.id
JOIN message_chunks c ON c.message_id = m.id AND c.chunk = wanted.chunk AND c.generation = %(generation)s
WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
  AND m.compacted_at IS NULL
  AND (%(session_id)s::text IS NULL OR m.session_id = %(session_id)s)
  AND (%(user_id)s::text IS NULL OR m.user_id IS NULL OR m.user_id = %(user_id)s)
  AND /*filters*/ true
