INSERT INTO outbox (projection, memory_id)
SELECT 'messages', id FROM messages WHERE compacted_at IS NULL ORDER BY id
