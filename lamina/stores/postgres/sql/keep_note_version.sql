INSERT INTO note_versions (note_id, version, content, category, importance, confidence, tags, metadata, written_at)
SELECT id, version, content, category, importance, confidence, tags, metadata, updated_at
FROM notes
WHERE id = %(id)s
