SELECT seq, memory_id FROM outbox
WHERE projection = %(projection)s AND seq <> ALL(%(applied)s::bigint[])
ORDER BY seq
LIMIT %(limit)s
