-- These notes, which are locked, with every note that was made from them, however indirectly, and what was merged into
-- them: it is gone already, but may come back; without its survivor's name it does not. What was merged into a note that
-- only goes with its sources is no part of it (release_merged). Again and again until nothing goes: what is being made
-- from one of them while this waits is seen by the next round only.
WITH RECURSIVE doomed (id, is_direct) AS (
    SELECT unnest(%(ids)s::uuid[]), true
    UNION
    SELECT more.id, more.is_direct
    FROM doomed d
    CROSS JOIN LATERAL (
        SELECT s.note_id, false FROM note_sources s WHERE s.source_id = d.id
        UNION ALL
        SELECT m.id, true FROM notes m WHERE m.merged_into = d.id AND d.is_direct
    ) AS more (id, is_direct)
), each AS (
    SELECT id, bool_or(is_direct) AS is_direct FROM doomed GROUP BY id
)
UPDATE notes n SET deleted_at = coalesce(n.deleted_at, %(now)s), merged_into = NULL
FROM each d
WHERE n.id = d.id AND n.tenant = %(tenant)s AND (n.deleted_at IS NULL OR n.merged_into IS NOT NULL)
RETURNING n.id, d.is_direct
