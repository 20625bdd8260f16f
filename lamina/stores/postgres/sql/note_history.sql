SELECT version, content, category, importance, confidence, tags, metadata, written_at, false AS is_current
FROM note_versions WHERE note_id = %(id)s
UNION ALL
SELECT version, content, category, importance, confidence, tags, metadata, updated_at, true
FROM notes WHERE id = %(id)s
ORDER BY version
