-- Every note that there is, with where it belongs; only one that is cold now has something to index.
SELECT n.id, n.tenant, n.workspace, n.namespace, n.user_id, n.agent_id, n.session_id, n.category, n.source,
       n.importance, n.tags, n.event_at, n.confidence, n.content,
       count(c.chunk) > 0 AS is_cold,
       array_agg(c.text_start ORDER BY c.chunk) AS starts,
       array_agg(c.text_end ORDER BY c.chunk) AS ends,
       array_agg(c.embedding::real[] ORDER BY c.chunk) FILTER (WHERE c.chunk IS NOT NULL) AS embeddings
FROM notes n
LEFT JOIN (note_chunks c JOIN embedding_generations g ON g.generation = c.generation AND g.is_active)
    ON c.note_id = n.id AND n.temperature = 'cold' AND n.deleted_at IS NULL
WHERE n.id = ANY(%(ids)s)
GROUP BY n.id
UNION ALL
-- An archived note has no row there any more; that it belongs in no index still has to be told to the one that had it.
SELECT id, tenant, workspace, namespace, user_id, NULL, NULL, NULL, NULL, NULL, '{}', archived_at, NULL, '', false,
       NULL, NULL, NULL
FROM archived_notes WHERE id = ANY(%(ids)s)
