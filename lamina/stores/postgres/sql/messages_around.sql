-- The wanted messages and those right before and after them, each at its chunk nearest to the query. A summary has the
-- position of the last message that it stands for: it is the neighbour of what follows. Messages and summaries have an
-- index each, and the statement a part for each.
SELECT DISTINCT ON (m.id)
       m.id, m.session_id, m.user_id, m.agent_id, m.position, m.role, m.name, m.ref, m.content, m.metadata, m.occurred_at,
       c.chunk, c.text_start, c.text_end,
       coalesce(1 - (c.embedding <=> %(embedding)s::vector), 0)::float8 AS cosine
FROM messages wanted
CROSS JOIN LATERAL (
    SELECT said.* FROM messages said
    WHERE said.tenant = wanted.tenant AND said.workspace = wanted.workspace AND said.namespace = wanted.namespace
      AND said.session_id = wanted.session_id
      AND said.position IN (wanted.position - 1, wanted.position, wanted.position + 1) AND NOT said.is_summary
    UNION ALL
    SELECT summary.* FROM messages summary
    WHERE summary.tenant = wanted.tenant AND summary.workspace = wanted.workspace
      AND summary.namespace = wanted.namespace AND summary.session_id = wanted.session_id
      AND summary.position IN (wanted.position - 1, wanted.position, wanted.position + 1) AND summary.is_summary
) m
JOIN message_chunks c ON c.message_id = m.id AND c.generation = %(generation)s
WHERE wanted.id = ANY(%(ids)s) AND m.compacted_at IS NULL
  AND m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
  AND (%(session_id)s::text IS NULL OR m.session_id = %(session_id)s)
  AND (%(user_id)s::text IS NULL OR m.user_id IS NULL OR m.user_id = %(user_id)s)
  AND /*filters*/ true
ORDER BY m.id, cosine DESC, c.chunk
