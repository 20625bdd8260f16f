SELECT id FROM messages
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s) AND compacted_at IS NULL
ORDER BY id
LIMIT %(limit)s
