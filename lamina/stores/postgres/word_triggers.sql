-- name: read_trigger
SELECT tgenabled <> 'D' AS is_enabled FROM pg_trigger
WHERE tgrelid = 'note_chunks'::regclass AND tgname = 'note_words'

-- name: enable_trigger
ALTER TABLE note_chunks ENABLE TRIGGER note_words

-- name: disable_trigger
ALTER TABLE note_chunks DISABLE TRIGGER note_words
