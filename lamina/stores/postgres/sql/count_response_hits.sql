-- Rows are locked in the order of their ids, so that two replicas cannot deadlock.
WITH counted AS (
    SELECT r.id, r.hits + c.hits AS hits, greatest(r.last_used_at, c.last_at) AS last_used_at
    FROM unnest(%(ids)s::uuid[], %(hits)s::bigint[], %(last)s::timestamptz[]) AS c (id, hits, last_at)
    JOIN responses r ON r.id = c.id
    ORDER BY r.id
    FOR UPDATE OF r
)
UPDATE responses r SET hits = counted.hits, last_used_at = counted.last_used_at
FROM counted
WHERE r.id = counted.id
