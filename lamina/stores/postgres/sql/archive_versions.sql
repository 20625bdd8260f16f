SELECT note_id AS id, version, content, category, importance, confidence, tags, metadata, written_at
FROM note_versions
WHERE note_id = ANY(%(ids)s)
ORDER BY note_id, version
