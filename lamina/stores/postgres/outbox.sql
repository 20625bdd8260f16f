-- name: enqueue
WITH added AS (
    INSERT INTO outbox (projection, memory_id)
    SELECT * FROM unnest(%(projections)s::text[], %(ids)s::uuid[])
)
SELECT pg_notify('lamina_outbox', '')

-- name: enqueue_links_to
-- The notes that are linked to these notes; each note is linked to a few others at most.
INSERT INTO outbox (projection, memory_id)
SELECT DISTINCT 'graph', from_id FROM memory_links WHERE to_id = ANY(%(ids)s::uuid[]) AND kind = 'similar'

-- name: take_outbox
SELECT seq, memory_id FROM outbox
WHERE projection = %(projection)s AND seq <> ALL(%(applied)s::bigint[])
ORDER BY seq
LIMIT %(limit)s

-- name: finish_outbox
DELETE FROM outbox WHERE seq = ANY(%(seqs)s)

-- name: outbox_lag
SELECT projection,
       count(*) AS pending,
       extract(epoch FROM clock_timestamp() - min(created_at))::float8 AS oldest_s
FROM outbox
GROUP BY projection
ORDER BY projection

-- name: enqueue_all_messages
INSERT INTO outbox (projection, memory_id)
SELECT 'messages', id FROM messages WHERE compacted_at IS NULL ORDER BY id

-- name: enqueue_all_notes
INSERT INTO outbox (projection, memory_id)
SELECT 'notes', id FROM notes WHERE deleted_at IS NULL ORDER BY id

-- name: enqueue_all_cold
INSERT INTO outbox (projection, memory_id)
SELECT 'cold', id FROM notes WHERE deleted_at IS NULL AND temperature = 'cold' ORDER BY id

-- name: enqueue_all_documents
INSERT INTO outbox (projection, memory_id)
SELECT 'documents', id FROM passages ORDER BY id

-- name: enqueue_all_graph
INSERT INTO outbox (projection, memory_id)
SELECT 'graph', id FROM (
    SELECT id FROM entities
    UNION ALL SELECT id FROM notes WHERE deleted_at IS NULL
    UNION ALL SELECT id FROM messages WHERE compacted_at IS NULL
    UNION ALL SELECT id FROM passages
) everything
