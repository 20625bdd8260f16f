SELECT n.id, n.tenant, n.workspace, n.namespace, n.user_id, n.agent_id, n.session_id, n.category, n.source, n.importance, n.tags, n.event_at, n.confidence, n.content,
       array_agg(c.text_start ORDER BY c.chunk) AS starts,
       array_agg(c.text_end ORDER BY c.chunk) AS ends,
       array_agg(c.embedding::real[] ORDER BY c.chunk) AS embeddings
FROM notes n
JOIN note_chunks c ON c.note_id = n.id
JOIN embedding_generations g ON g.generation = c.generation AND g.is_active
WHERE n.id = ANY(%(ids)s) AND n.deleted_at IS NULL AND n.temperature = 'warm'
GROUP BY n.id
