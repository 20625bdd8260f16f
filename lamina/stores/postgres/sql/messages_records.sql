SELECT m.id, m.tenant, m.workspace, m.namespace, m.user_id, m.agent_id, m.session_id, m.role, m.occurred_at, m.name, m.content,
       array_agg(c.text_start ORDER BY c.chunk) AS starts,
       array_agg(c.text_end ORDER BY c.chunk) AS ends
FROM messages m
JOIN message_chunks c ON c.message_id = m.id
JOIN embedding_generations g ON g.generation = c.generation AND g.is_active
WHERE m.id = ANY(%(ids)s) AND m.compacted_at IS NULL
GROUP BY m.id
