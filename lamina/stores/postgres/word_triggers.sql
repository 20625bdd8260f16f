-- name: read_trigger
SELECT tgenabled <> 'D' AS is_enabled FROM pg_trigger
WHERE tgrelid = 'note_chunks'::regclass AND tgname = 'note_words'

-- name: enable_trigger
ALTER TABLE note_chunks ENABLE TRIGGER note_words

-- name: disable_trigger
ALTER TABLE note_chunks DISABLE TRIGGER note_words

-- name: mark_words_of_trigger
INSERT INTO stale_words (relation, id)
SELECT 'notes', id FROM notes WHERE deleted_at IS NULL AND temperature = 'warm'
ON CONFLICT DO NOTHING
