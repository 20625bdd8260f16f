-- These entities as far as the query may see them: stated ones, and those that a visible memory mentions. Counting stops where
-- nobody counts any more.
SELECT n.id, n.name, n.type, n.aliases, n.confidence, n.is_asserted, n.first_seen_at, n.last_seen_at,
       (SELECT count(*) FROM (
            SELECT FROM memory_links l
            WHERE l.to_id = n.id AND l.kind = 'mentions'
              AND (%(user_id)s::text IS NULL OR l.user_id IS NULL OR l.user_id = %(user_id)s)
              AND (NOT %(shared_only)s OR l.user_id IS NULL)
            LIMIT 10000
        ) counted) AS mentions
FROM entities n
WHERE n.id = ANY(%(ids)s)
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND (n.is_asserted
       OR EXISTS (SELECT FROM memory_links l WHERE l.to_id = n.id
                  AND (%(user_id)s::text IS NULL OR l.user_id IS NULL OR l.user_id = %(user_id)s)
                  AND (NOT %(shared_only)s OR l.user_id IS NULL))
       OR EXISTS (SELECT FROM edges e JOIN edge_evidence v ON v.edge_id = e.id
                  WHERE (e.from_id = n.id OR e.to_id = n.id)
                    AND (%(user_id)s::text IS NULL OR v.user_id IS NULL OR v.user_id = %(user_id)s)
                    AND (NOT %(shared_only)s OR v.user_id IS NULL)))
  AND /*filters*/ true
ORDER BY n.id
