-- The note, which is locked, and every note that was made from it, however indirectly. Again and again until nothing
-- goes: what is being made from one of them while this waits is seen by the next round only.
WITH RECURSIVE doomed (id) AS (
    SELECT id FROM notes WHERE id = %(id)s AND tenant = %(tenant)s
    UNION
    SELECT s.note_id FROM note_sources s JOIN doomed d ON d.id = s.source_id
)
UPDATE notes n SET deleted_at = %(now)s
FROM doomed d
WHERE n.id = d.id AND n.tenant = %(tenant)s AND n.deleted_at IS NULL
RETURNING n.id
