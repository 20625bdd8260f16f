INSERT INTO outbox (projection, memory_id)
SELECT 'graph', id FROM (
    SELECT id FROM entities
    UNION ALL SELECT id FROM notes WHERE deleted_at IS NULL
    UNION ALL SELECT id FROM messages WHERE compacted_at IS NULL
    UNION ALL SELECT id FROM passages
) everything
