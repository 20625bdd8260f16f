INSERT INTO outbox (projection, memory_id)
SELECT 'documents', id FROM passages ORDER BY id
