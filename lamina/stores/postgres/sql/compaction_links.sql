-- The entities that summaries name, as far as what they stand for names them: with the same source, for a summary is no
-- new evidence.
INSERT INTO memory_links (
    from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
)
SELECT DISTINCT ON (told.id, l.to_id)
       told.id, l.to_id, l.kind, l.from_tier, l.tenant, l.workspace, l.namespace, l.user_id, l.source, l.strength, l.seen_at
FROM unnest(%(ids)s::uuid[], %(sources)s::uuid[]) AS told (id, source_id)
JOIN memory_links l ON l.from_id = told.source_id AND l.kind = 'mentions'
JOIN unnest(%(namers)s::uuid[], %(entities)s::uuid[]) AS named (id, entity_id)
     ON named.id = told.id AND named.entity_id = l.to_id
WHERE l.tenant = %(tenant)s AND l.workspace = %(workspace)s AND l.namespace = %(namespace)s
ORDER BY told.id, l.to_id, l.seen_at DESC, l.from_id
ON CONFLICT DO NOTHING
