-- Links to restored notes, from notes that nobody rewrote meanwhile: all but the strength is in these.
INSERT INTO memory_links (
    from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
)
SELECT n.id, l.to_id, 'similar', 2, n.tenant, n.workspace, n.namespace, n.user_id, n.source, l.strength, n.event_at
FROM unnest(%(from_ids)s::uuid[], %(to_ids)s::uuid[], %(strengths)s::float8[]) AS l (from_id, to_id, strength)
JOIN notes n ON n.id = l.from_id AND n.tenant = %(tenant)s AND n.deleted_at IS NULL AND n.updated_at <= %(archived_at)s
ON CONFLICT DO NOTHING
RETURNING from_id
