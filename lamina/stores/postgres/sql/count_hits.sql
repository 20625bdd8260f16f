-- Add what was found; rows are locked in the order of their ids, so that two replicas cannot deadlock.
WITH counted AS (
    SELECT n.id, n.hits, n.last_hit_at, c.hits AS more, c.last_at
    FROM unnest(%(ids)s::uuid[], %(hits)s::bigint[], %(last)s::timestamptz[]) AS c (id, hits, last_at)
    JOIN notes n ON n.id = c.id
    WHERE n.deleted_at IS NULL
    ORDER BY n.id
    FOR UPDATE OF n
)
UPDATE notes n
SET hits = n.hits + counted.more, last_hit_at = greatest(n.last_hit_at, counted.last_at), weight = 1
FROM counted
WHERE n.id = counted.id
RETURNING n.id, n.temperature, counted.hits AS hits_before, counted.last_hit_at AS last_hit_before
