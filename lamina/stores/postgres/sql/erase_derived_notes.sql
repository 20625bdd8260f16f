-- What was made from these notes, however indirectly, hidden notes included.
WITH RECURSIVE made (id) AS (
    SELECT note_id FROM note_sources WHERE source_id = ANY(%(ids)s)
    UNION
    SELECT s.note_id FROM made m JOIN note_sources s ON s.source_id = m.id
)
SELECT n.id, n.workspace, n.namespace
FROM notes n JOIN made m ON m.id = n.id
WHERE n.tenant = %(tenant)s AND n.id <> ALL(%(ids)s)
ORDER BY n.id
FOR UPDATE OF n
