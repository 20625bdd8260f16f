-- These entities as far as the query may see them: stated ones, and those that a visible memory mentions. Counting stops where
-- nobody counts any more. What notes alone tell of that expire is over with the last of them.
SELECT n.id, n.name, n.type, n.aliases, n.confidence * n.standing AS confidence, n.is_asserted, n.first_seen_at,
       n.last_seen_at, nullif(told.until, 'infinity') AS expires_at,
       (SELECT count(*) FROM (
            SELECT FROM memory_links l
            WHERE l.to_id = n.id AND l.kind = 'mentions'
              AND (%(user_id)s::text IS NULL OR l.user_id IS NULL OR l.user_id = %(user_id)s)
              AND (NOT %(shared_only)s OR l.user_id IS NULL)
              AND NOT EXISTS (SELECT FROM notes x WHERE x.id = l.from_id
                              AND (x.expires_at <= statement_timestamp()
                                   OR (x.deleted_at IS NOT NULL AND x.merged_into IS NULL)))
            LIMIT 10000
        ) counted) AS mentions
FROM entities n
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN n.is_asserted
             OR EXISTS (SELECT FROM memory_links l WHERE l.to_id = n.id
                        AND (%(user_id)s::text IS NULL OR l.user_id IS NULL OR l.user_id = %(user_id)s)
                        AND (NOT %(shared_only)s OR l.user_id IS NULL)
                        AND NOT EXISTS (SELECT FROM notes x WHERE x.id = l.from_id AND x.expires_at IS NOT NULL))
             OR EXISTS (SELECT FROM edges e JOIN edge_evidence v ON v.edge_id = e.id
                        WHERE (e.from_id = n.id OR e.to_id = n.id)
                          AND (%(user_id)s::text IS NULL OR v.user_id IS NULL OR v.user_id = %(user_id)s)
                          AND (NOT %(shared_only)s OR v.user_id IS NULL)
                          AND NOT EXISTS (SELECT FROM notes x WHERE x.id = v.memory_id AND x.expires_at IS NOT NULL))
        THEN 'infinity'
        ELSE (SELECT max(x.expires_at)
              FROM (
                  SELECT l.from_id, l.user_id FROM memory_links l WHERE l.to_id = n.id
                  UNION ALL
                  SELECT v.memory_id, v.user_id
                  FROM edges e JOIN edge_evidence v ON v.edge_id = e.id
                  WHERE e.from_id = n.id OR e.to_id = n.id
              ) AS teller (id, user_id)
              JOIN notes x ON x.id = teller.id AND x.expires_at > statement_timestamp()
              WHERE (%(user_id)s::text IS NULL OR teller.user_id IS NULL OR teller.user_id = %(user_id)s)
                AND (NOT %(shared_only)s OR teller.user_id IS NULL))
        END AS until
) told
WHERE n.id = ANY(%(ids)s)
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND told.until IS NOT NULL
  AND /*filters*/ true
ORDER BY n.id
