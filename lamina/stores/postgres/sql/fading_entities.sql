-- Entities with how many sources mention them; what somebody stated stands as it was stated.
SELECT e.id, e.standing, e.last_seen_at,
       (SELECT count(DISTINCT sha256_of(l.source)) FROM memory_links l
        WHERE l.to_id = e.id AND l.kind IN ('about', 'mentions')) AS sources
FROM entities e
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND NOT e.is_asserted
  AND (e.standing < 1 OR e.last_seen_at <= %(moment)s::timestamptz - interval '7 days')
  AND (%(after)s::uuid IS NULL OR e.id > %(after)s)
ORDER BY e.id
LIMIT %(limit)s
