-- name: count_scope
-- Memories of a session, a namespace, a workspace or the tenant that a call can delete.
SELECT (SELECT count(*) FROM notes WHERE tenant = %(tenant)s
        AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
        AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
        AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s) AND deleted_at IS NULL) AS notes,
       (SELECT count(*) FROM messages WHERE tenant = %(tenant)s
        AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
        AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
        AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)) AS messages,
       (SELECT count(*) FROM documents WHERE tenant = %(tenant)s
        AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
        AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
        AND %(session_id)s::text IS NULL) AS documents,
       (SELECT count(*) FROM procedures WHERE tenant = %(tenant)s
        AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
        AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
        AND %(session_id)s::text IS NULL AND deleted_at IS NULL) AS procedures

-- name: list_scope
-- Some of the same that were stored by a time, of any kind; those in a page are deleted before the next is read.
(SELECT 'note' AS kind, id FROM notes WHERE tenant = %(tenant)s
   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
   AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
   AND deleted_at IS NULL AND created_at <= %(stored_by)s LIMIT %(limit)s)
UNION ALL
(SELECT 'message', id FROM messages WHERE tenant = %(tenant)s
   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
   AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
   AND created_at <= %(stored_by)s LIMIT %(limit)s)
UNION ALL
(SELECT 'document', id FROM documents WHERE tenant = %(tenant)s
   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
   AND %(session_id)s::text IS NULL AND created_at <= %(stored_by)s LIMIT %(limit)s)
UNION ALL
(SELECT 'procedure', id FROM procedures WHERE tenant = %(tenant)s
   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
   AND %(session_id)s::text IS NULL AND deleted_at IS NULL AND created_at <= %(stored_by)s LIMIT %(limit)s)
LIMIT %(limit)s

-- name: list_discarded_of_scope
-- What a deletion of a scope put into the trash while it worked.
SELECT id FROM trash
WHERE tenant = %(tenant)s AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
  AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
  AND deleted_at BETWEEN %(since)s AND %(until)s AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s
