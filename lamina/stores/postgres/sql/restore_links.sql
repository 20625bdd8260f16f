-- Links of notes to what is still there: entities (kept until the transaction ends), and notes that nobody rewrote.
INSERT INTO memory_links (
    from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
)
SELECT l.from_id, l.to_id, l.kind, 2, %(tenant)s, %(workspace)s, %(namespace)s, l.user_id, l.source, l.strength,
       l.seen_at
FROM jsonb_to_recordset(%(rows)s::jsonb) AS l (
    from_id uuid, to_id uuid, kind text, user_id text, source text, strength float8, seen_at timestamptz
)
WHERE CASE WHEN l.kind = 'similar'
      THEN EXISTS (SELECT FROM notes o
                   WHERE o.id = l.to_id AND o.deleted_at IS NULL AND o.updated_at <= %(archived_at)s)
      ELSE EXISTS (SELECT FROM entities e WHERE e.id = l.to_id)
      END
ON CONFLICT DO NOTHING
