-- name: enqueue
WITH added AS (
    INSERT INTO outbox (projection, memory_id)
    SELECT * FROM unnest(%(projections)s::text[], %(ids)s::uuid[])
)
SELECT pg_notify('lamina_outbox', '')

-- name: enqueue_links_to
-- Notes that are linked to these; each note is linked to a few others at most.
INSERT INTO outbox (projection, memory_id)
SELECT DISTINCT 'graph', from_id FROM memory_links WHERE to_id = ANY(%(ids)s::uuid[]) AND kind = 'similar'

-- name: take_outbox
SELECT seq, memory_id FROM outbox
WHERE projection = %(projection)s AND seq <> ALL(%(applied)s::bigint[])
ORDER BY seq
LIMIT %(limit)s

-- name: finish_outbox
DELETE FROM outbox WHERE seq = ANY(%(seqs)s)

-- name: measure_lag
SELECT projection,
       count(*) AS pending,
       extract(epoch FROM clock_timestamp() - min(created_at))::float8 AS oldest_s
FROM outbox
GROUP BY projection
ORDER BY projection
