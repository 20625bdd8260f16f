-- fragment: in_place
-- Of a namespace, of a whole workspace, or of the tenant.
tenant = %(tenant)s AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)

-- fragment: in_scope
-- Of a session, too.
/*in_place*/ AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)

-- fragment: live_note
/*in_scope*/ AND deleted_at IS NULL AND (expires_at IS NULL OR expires_at > statement_timestamp())

-- fragment: of_no_session
/*in_place*/ AND %(session_id)s::text IS NULL

-- fragment: page
AND created_at <= %(stored_by)s AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id LIMIT %(limit)s

-- name: count_scope
-- Memories of a session, a namespace, a workspace or the tenant that a call can delete, up to a number of each kind.
SELECT (SELECT count(*) FROM (SELECT FROM notes WHERE /*live_note*/ LIMIT %(most)s) counted) AS notes,
       (SELECT count(*) FROM (SELECT FROM messages WHERE /*in_scope*/ LIMIT %(most)s) counted) AS messages,
       (SELECT count(*) FROM (SELECT FROM documents WHERE /*of_no_session*/ LIMIT %(most)s) counted) AS documents,
       (SELECT count(*) FROM (SELECT FROM procedures WHERE /*of_no_session*/ AND deleted_at IS NULL LIMIT %(most)s) counted)
           AS procedures

-- name: find_kept_in_scope
-- Kinds of rows that a deletion of a scope leaves there. Of notes that earlier releases archived, the file alone says the
-- session.
SELECT array_remove(ARRAY[
    CASE WHEN EXISTS (SELECT FROM notes WHERE /*in_scope*/ AND deleted_at IS NULL AND expires_at <= statement_timestamp())
         THEN 'expired_notes' END,
    CASE WHEN EXISTS (SELECT FROM archived_notes WHERE /*in_place*/
                   AND (%(session_id)s::text IS NULL OR session_id IS NULL OR session_id = %(session_id)s))
         THEN 'archived_notes' END,
    CASE WHEN EXISTS (SELECT FROM agent_turns WHERE /*in_scope*/) THEN 'agent_turns' END,
    CASE WHEN EXISTS (SELECT FROM profiles WHERE /*of_no_session*/) THEN 'profiles' END,
    CASE WHEN EXISTS (SELECT FROM entities WHERE /*of_no_session*/) THEN 'entities' END
], NULL)::text[] AS kinds

-- name: list_scope
-- A page by id of the same, of any kind, that were stored by a time.
(SELECT 'note' AS kind, id FROM notes WHERE /*live_note*/ /*page*/)
UNION ALL
(SELECT 'message', id FROM messages WHERE /*in_scope*/ /*page*/)
UNION ALL
(SELECT 'document', id FROM documents WHERE /*of_no_session*/ /*page*/)
UNION ALL
(SELECT 'procedure', id FROM procedures WHERE /*of_no_session*/ AND deleted_at IS NULL /*page*/)
ORDER BY id
LIMIT %(limit)s

-- name: list_discarded_of_operation
-- A page by id of what a deletion of a scope put into the trash, as far as it lies there.
SELECT id FROM trash
WHERE tenant = %(tenant)s AND operation_id = %(operation_id)s AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s
