-- name: read_trigger
SELECT tgenabled <> 'D' AS is_enabled, obj_description(oid, 'pg_trigger') IS NOT NULL AS has_unmarked_words
FROM pg_trigger
WHERE tgrelid = 'note_chunks'::regclass AND tgname = 'note_words'

-- name: enable_trigger
ALTER TABLE note_chunks ENABLE TRIGGER note_words

-- name: disable_trigger
ALTER TABLE note_chunks DISABLE TRIGGER note_words

-- name: note_words_of_trigger
-- In the transaction that switches it off: a process that ends before it has marked them leaves that to the next start.
COMMENT ON TRIGGER note_words ON note_chunks IS 'The words that it made are not marked yet.'

-- name: forget_words_of_trigger
COMMENT ON TRIGGER note_words ON note_chunks IS NULL

-- name: mark_words_of_trigger
INSERT INTO stale_words (relation, id)
SELECT 'notes', id FROM notes WHERE deleted_at IS NULL AND temperature = 'warm'
ON CONFLICT DO NOTHING
