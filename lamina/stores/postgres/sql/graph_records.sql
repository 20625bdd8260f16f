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
