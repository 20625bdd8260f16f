-- What was merged into notes that are gone because one of their sources is: it says what it said, unless the scope has
-- its text again. Of equal texts the first comes back, and the others are merged into that one.
WITH candidates AS (
    SELECT m.id, first_value(m.id) OVER (
        PARTITION BY m.workspace, m.namespace, m.user_id, m.content_hash ORDER BY m.id) AS first_id
    FROM notes m
    WHERE m.merged_into = ANY(%(ids)s) AND m.tenant = %(tenant)s AND m.deleted_at IS NOT NULL
      AND NOT EXISTS (
          SELECT FROM notes o
          WHERE (o.tenant, o.workspace, o.namespace, o.content_hash)
                = (m.tenant, m.workspace, m.namespace, m.content_hash)
            AND o.user_id IS NOT DISTINCT FROM m.user_id AND o.deleted_at IS NULL AND o.id <> m.id)
), locked AS (
    SELECT m.id, nullif(c.first_id, m.id) AS first_id
    FROM notes m JOIN candidates c ON c.id = m.id
    WHERE m.merged_into = ANY(%(ids)s) AND m.deleted_at IS NOT NULL
    ORDER BY m.id
    FOR UPDATE OF m
), released AS (
    UPDATE notes m
    SET deleted_at = CASE WHEN l.first_id IS NOT NULL THEN m.deleted_at END, merged_into = l.first_id
    FROM locked l
    WHERE m.id = l.id
    RETURNING m.id, m.deleted_at
)
SELECT id FROM released WHERE deleted_at IS NULL
