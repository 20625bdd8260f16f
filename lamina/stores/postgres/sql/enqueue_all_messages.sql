INSERT INTO outbox (projection, memory_id)
SELECT 'messages', id FROM messages ORDER BY id
