INSERT INTO outbox (projection, memory_id)
SELECT 'cold', id FROM notes WHERE deleted_at IS NULL AND temperature = 'cold' ORDER BY id
