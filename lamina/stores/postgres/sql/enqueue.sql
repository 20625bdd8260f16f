INSERT INTO outbox (projection, memory_id)
SELECT %(projection)s, unnest(%(ids)s::uuid[])
