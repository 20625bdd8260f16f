-- What was merged into notes that are gone because one of their sources is: it says what it said, unless the scope has
-- its text again.
WITH locked AS (
    SELECT m.id
    FROM notes m
    WHERE m.merged_into = ANY(%(ids)s) AND m.tenant = %(tenant)s AND m.deleted_at IS NOT NULL
      AND NOT EXISTS (
          SELECT FROM notes o
          WHERE (o.tenant, o.workspace, o.namespace, o.content_hash)
                = (m.tenant, m.workspace, m.namespace, m.content_hash)
            AND o.user_id IS NOT DISTINCT FROM m.user_id AND o.deleted_at IS NULL AND o.id <> m.id)
    ORDER BY m.id
    FOR UPDATE OF m
)
UPDATE notes m SET deleted_at = NULL, merged_into = NULL
FROM locked
WHERE m.id = locked.id
RETURNING m.id
