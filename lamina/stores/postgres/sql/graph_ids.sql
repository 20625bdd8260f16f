SELECT id FROM (
    SELECT id, tenant FROM entities
    UNION ALL SELECT id, tenant FROM notes WHERE deleted_at IS NULL
    UNION ALL SELECT id, tenant FROM messages WHERE compacted_at IS NULL
    UNION ALL SELECT id, tenant FROM passages
) everything
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s
