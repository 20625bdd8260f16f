-- Where a page of a scope's notes ends, from the newest on: the last of so many.
SELECT created_at, id
FROM (
    SELECT created_at, id FROM notes
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND deleted_at IS NULL AND expires_at IS NULL
      AND (%(created_at)s::timestamptz IS NULL OR (created_at, id) < (%(created_at)s, %(id)s::uuid))
    ORDER BY created_at DESC, id DESC
    LIMIT %(limit)s
) page
ORDER BY created_at, id
LIMIT 1
