SELECT p.id, p.content, p.heading, d.title, d.tenant, d.workspace, d.namespace, d.user_id, d.agent_id, d.tags,
       d.source, d.event_at,
       array_agg(c.text_start ORDER BY c.chunk) AS starts,
       array_agg(c.text_end ORDER BY c.chunk) AS ends,
       array_agg(c.embedding::real[] ORDER BY c.chunk) AS embeddings
FROM passages p
JOIN documents d ON d.id = p.document_id
JOIN passage_chunks c ON c.passage_id = p.id
JOIN embedding_generations g ON g.generation = c.generation AND g.is_active
WHERE p.id = ANY(%(ids)s)
GROUP BY p.id, d.id
