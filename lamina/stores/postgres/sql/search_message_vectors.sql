-- Candidates by the bare distance, so that the index serves them; ties and the join stand outside.
SELECT c.chunk, c.text_start, c.text_end, 1 - c.distance AS cosine,
       m.id, m.session_id, m.user_id, m.agent_id, m.role, m.name, m.ref, m.content, m.metadata, m.occurred_at
FROM (
    SELECT message_id, chunk, text_start, text_end, embedding <=> %(embedding)s AS distance
    FROM message_chunks
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND generation = %(generation)s
      AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
      AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
      AND /*filters*/ true
    ORDER BY embedding <=> %(embedding)s
    LIMIT %(candidates)s
) c
JOIN messages m ON m.id = c.message_id AND m.compacted_at IS NULL
ORDER BY c.distance, m.id, c.chunk
