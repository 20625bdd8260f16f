-- What was made from these notes, however indirectly, stays no longer than they do; also what is hidden, which may come
-- back.
WITH RECURSIVE made (id, expires_at) AS (
    SELECT s.note_id, n.expires_at
    FROM note_sources s
    JOIN notes n ON n.id = s.source_id
    WHERE s.source_id = ANY(%(ids)s) AND n.expires_at IS NOT NULL
    UNION
    SELECT s.note_id, m.expires_at FROM made m JOIN note_sources s ON s.source_id = m.id
)
UPDATE notes n SET expires_at = least(n.expires_at, first.expires_at)
FROM (SELECT id, min(expires_at) AS expires_at FROM made GROUP BY id) AS first
WHERE n.id = first.id AND (n.expires_at IS NULL OR n.expires_at > first.expires_at)
