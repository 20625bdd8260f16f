SELECT seq, memory_id FROM outbox
WHERE projection = %(projection)s
ORDER BY seq
LIMIT %(limit)s
