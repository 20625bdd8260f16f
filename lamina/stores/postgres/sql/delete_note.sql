-- The note, and every note that was made from it, however indirectly.
WITH RECURSIVE doomed (id) AS (
    SELECT id FROM notes WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL
    UNION
    SELECT s.note_id FROM note_sources s JOIN doomed d ON d.id = s.source_id
)
UPDATE notes n SET deleted_at = %(now)s
FROM doomed d
WHERE n.id = d.id AND n.tenant = %(tenant)s AND n.deleted_at IS NULL
RETURNING n.id, n.workspace, n.namespace
