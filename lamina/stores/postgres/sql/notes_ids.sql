SELECT id FROM notes
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s) AND deleted_at IS NULL AND temperature = 'warm'
ORDER BY id
LIMIT %(limit)s
