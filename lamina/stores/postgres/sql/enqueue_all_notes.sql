INSERT INTO outbox (projection, memory_id)
SELECT 'notes', id FROM notes WHERE deleted_at IS NULL ORDER BY id
