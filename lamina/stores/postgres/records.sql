-- name: messages_records
SELECT m.id, m.tenant, m.workspace, m.namespace, m.user_id, m.agent_id, m.session_id, m.role, m.occurred_at, m.name, m.content,
       array_agg(c.text_start ORDER BY c.chunk) AS starts,
       array_agg(c.text_end ORDER BY c.chunk) AS ends
FROM messages m
JOIN message_chunks c ON c.message_id = m.id
JOIN embedding_generations g ON g.generation = c.generation AND g.is_active
WHERE m.id = ANY(%(ids)s) AND m.compacted_at IS NULL
GROUP BY m.id

-- name: messages_ids
SELECT id FROM messages
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s) AND compacted_at IS NULL
ORDER BY id
LIMIT %(limit)s

-- name: notes_records
SELECT n.id, n.tenant, n.workspace, n.namespace, n.user_id, n.agent_id, n.session_id, n.category, n.source, n.importance, n.tags, n.event_at, n.confidence, n.content,
       array_agg(c.text_start ORDER BY c.chunk) AS starts,
       array_agg(c.text_end ORDER BY c.chunk) AS ends,
       array_agg(c.embedding::real[] ORDER BY c.chunk) AS embeddings
FROM notes n
JOIN note_chunks c ON c.note_id = n.id
JOIN embedding_generations g ON g.generation = c.generation AND g.is_active
WHERE n.id = ANY(%(ids)s) AND n.deleted_at IS NULL AND n.temperature = 'warm'
GROUP BY n.id

-- name: notes_ids
SELECT id FROM notes
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s) AND deleted_at IS NULL AND temperature = 'warm'
ORDER BY id
LIMIT %(limit)s

-- name: cold_records
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

-- name: cold_ids
SELECT id FROM notes
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s) AND deleted_at IS NULL AND temperature = 'cold'
ORDER BY id
LIMIT %(limit)s

-- name: documents_records
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

-- name: documents_ids
SELECT id FROM passages
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s

-- name: graph_records
-- The nodes of the graph: memories with their links, entities with those edges that time has left anything of. Times
-- of links in microseconds. A link to a note that is hidden stays out until that note comes back: the graph lost it
-- with the note's node. The note is looked for rather than joined, or a page might be joined with all of them.
SELECT id, 'Memory' AS label, 2 AS tier, tenant, workspace, namespace, user_id, NULL AS name, event_at AS seen_at,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(
                   l.to_id, l.kind, l.strength, CASE WHEN l.user_id IS NULL THEN NULL ELSE jsonb_build_array(l.user_id) END,
                   (extract(epoch FROM l.seen_at) * 1000000)::bigint) ORDER BY l.to_id, l.kind), '[]')
        FROM memory_links l
        WHERE l.from_id = notes.id
          AND (l.kind <> 'similar' OR (SELECT o.deleted_at FROM notes o WHERE o.id = l.to_id) IS NULL)) AS links
FROM notes WHERE id = ANY(%(ids)s) AND deleted_at IS NULL
UNION ALL
SELECT id, 'Memory', 1, tenant, workspace, namespace, user_id, NULL, occurred_at,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(
                   l.to_id, l.kind, l.strength, CASE WHEN l.user_id IS NULL THEN NULL ELSE jsonb_build_array(l.user_id) END,
                   (extract(epoch FROM l.seen_at) * 1000000)::bigint) ORDER BY l.to_id, l.kind), '[]')
        FROM memory_links l WHERE l.from_id = messages.id)
FROM messages WHERE id = ANY(%(ids)s) AND compacted_at IS NULL
UNION ALL
SELECT p.id, 'Memory', 6, p.tenant, p.workspace, p.namespace, p.user_id, NULL, d.event_at,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(
                   l.to_id, l.kind, l.strength, CASE WHEN l.user_id IS NULL THEN NULL ELSE jsonb_build_array(l.user_id) END,
                   (extract(epoch FROM l.seen_at) * 1000000)::bigint) ORDER BY l.to_id, l.kind), '[]')
        FROM memory_links l WHERE l.from_id = p.id)
FROM passages p JOIN documents d ON d.id = p.document_id WHERE p.id = ANY(%(ids)s)
UNION ALL
SELECT n.id, 'Entity', 4, n.tenant, n.workspace, n.namespace, NULL, n.name, n.first_seen_at,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(
                   e.to_id, e.type, e.strength * e.confidence * e.standing,
                   (SELECT CASE WHEN count(*) FILTER (WHERE v.user_id IS NULL) = 0
                                THEN jsonb_agg(DISTINCT v.user_id ORDER BY v.user_id) END
                    FROM edge_evidence v WHERE v.edge_id = e.id),
                   (extract(epoch FROM e.first_seen_at) * 1000000)::bigint) ORDER BY e.to_id, e.type), '[]')
        FROM edges e WHERE e.from_id = n.id AND e.strength * e.standing >= %(least_strength)s)
FROM entities n WHERE n.id = ANY(%(ids)s)

-- name: graph_ids
SELECT id FROM (
    SELECT id, tenant FROM entities
    UNION ALL SELECT id, tenant FROM notes WHERE deleted_at IS NULL
    UNION ALL SELECT id, tenant FROM messages WHERE compacted_at IS NULL
    UNION ALL SELECT id, tenant FROM passages
) everything
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s
