-- name: count_scope
-- Memories of a session, a namespace, a workspace or the tenant that a call can delete, up to a number of each kind.
SELECT (SELECT count(*) FROM (
            SELECT FROM notes WHERE tenant = %(tenant)s
              AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
              AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
              AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s) AND deleted_at IS NULL
              AND (expires_at IS NULL OR expires_at > statement_timestamp())
            LIMIT %(most)s) counted) AS notes,
       (SELECT count(*) FROM (
            SELECT FROM messages WHERE tenant = %(tenant)s
              AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
              AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
              AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
            LIMIT %(most)s) counted) AS messages,
       (SELECT count(*) FROM (
            SELECT FROM documents WHERE tenant = %(tenant)s
              AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
              AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
              AND %(session_id)s::text IS NULL
            LIMIT %(most)s) counted) AS documents,
       (SELECT count(*) FROM (
            SELECT FROM procedures WHERE tenant = %(tenant)s
              AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
              AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
              AND %(session_id)s::text IS NULL AND deleted_at IS NULL
            LIMIT %(most)s) counted) AS procedures

-- name: find_kept_in_scope
-- Kinds of rows that a deletion of a scope leaves there. Of notes that earlier releases archived, the file alone says the
-- session.
SELECT array_remove(ARRAY[
    CASE WHEN EXISTS (SELECT FROM notes WHERE tenant = %(tenant)s
                   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
                   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
                   AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
                   AND deleted_at IS NULL AND expires_at <= statement_timestamp()) THEN 'expired_notes' END,
    CASE WHEN EXISTS (SELECT FROM archived_notes WHERE tenant = %(tenant)s
                   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
                   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
                   AND (%(session_id)s::text IS NULL OR session_id IS NULL OR session_id = %(session_id)s))
         THEN 'archived_notes' END,
    CASE WHEN EXISTS (SELECT FROM agent_turns WHERE tenant = %(tenant)s
                   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
                   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
                   AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)) THEN 'agent_turns' END,
    CASE WHEN %(session_id)s::text IS NULL AND EXISTS (SELECT FROM profiles WHERE tenant = %(tenant)s
                   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
                   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)) THEN 'profiles' END,
    CASE WHEN %(session_id)s::text IS NULL AND EXISTS (SELECT FROM entities WHERE tenant = %(tenant)s
                   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
                   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)) THEN 'entities' END
], NULL)::text[] AS kinds

-- name: list_scope
-- A page by id of the same, of any kind, that were stored by a time.
(SELECT 'note' AS kind, id FROM notes WHERE tenant = %(tenant)s
   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
   AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
   AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > statement_timestamp())
   AND created_at <= %(stored_by)s
   AND (%(after)s::uuid IS NULL OR id > %(after)s)
 ORDER BY id LIMIT %(limit)s)
UNION ALL
(SELECT 'message', id FROM messages WHERE tenant = %(tenant)s
   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
   AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
   AND created_at <= %(stored_by)s
   AND (%(after)s::uuid IS NULL OR id > %(after)s)
 ORDER BY id LIMIT %(limit)s)
UNION ALL
(SELECT 'document', id FROM documents WHERE tenant = %(tenant)s
   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
   AND %(session_id)s::text IS NULL AND created_at <= %(stored_by)s
   AND (%(after)s::uuid IS NULL OR id > %(after)s)
 ORDER BY id LIMIT %(limit)s)
UNION ALL
(SELECT 'procedure', id FROM procedures WHERE tenant = %(tenant)s
   AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
   AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
   AND %(session_id)s::text IS NULL AND deleted_at IS NULL AND created_at <= %(stored_by)s
   AND (%(after)s::uuid IS NULL OR id > %(after)s)
 ORDER BY id LIMIT %(limit)s)
ORDER BY id
LIMIT %(limit)s

-- name: list_discarded_of_operation
-- A page by id of what a deletion of a scope put into the trash, as far as it lies there.
SELECT id FROM trash
WHERE tenant = %(tenant)s AND operation_id = %(operation_id)s AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s
