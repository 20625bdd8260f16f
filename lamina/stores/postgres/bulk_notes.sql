-- name: count_selected_notes
SELECT count(*) AS matched FROM notes n
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())
  AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
  AND (%(agent_id)s::text IS NULL OR agent_id = %(agent_id)s)
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
  AND /*filters*/ true

-- name: select_notes
-- A page by id, of notes that were stored by then: what comes later was not meant.
SELECT id, workspace, namespace, user_id, agent_id, session_id, category, content, importance, confidence, tags,
       metadata, source, version, hits, event_at, last_hit_at, temperature, weight, expires_at, created_at,
       updated_at
FROM notes n
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())
  AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
  AND (%(agent_id)s::text IS NULL OR agent_id = %(agent_id)s)
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
  AND created_at <= %(stored_by)s AND (%(after)s::uuid IS NULL OR id > %(after)s)
  AND /*filters*/ true
ORDER BY id
LIMIT %(limit)s

-- name: lock_selected_notes
-- Those of a page that match still, locked until the transaction ends.
SELECT id, workspace, namespace, user_id, agent_id, session_id, category, content, importance, confidence, tags,
       metadata, source, version, hits, event_at, last_hit_at, temperature, weight, expires_at, created_at,
       updated_at
FROM notes n
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())
  AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
  AND (%(agent_id)s::text IS NULL OR agent_id = %(agent_id)s)
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
  AND id = ANY(%(ids)s)
  AND /*filters*/ true
ORDER BY id
FOR UPDATE

-- name: move_notes
-- Notes of one namespace to another one, but for those whose text their user has there; their chunks with them.
UPDATE notes n SET workspace = %(workspace)s, namespace = %(namespace)s
WHERE n.tenant = %(tenant)s AND n.id = ANY(%(ids)s)
  AND NOT EXISTS (
      SELECT FROM notes o
      WHERE (o.tenant, o.workspace, o.namespace, o.content_hash)
            = (n.tenant, %(workspace)s, %(namespace)s, n.content_hash)
        AND o.user_id IS NOT DISTINCT FROM n.user_id AND o.deleted_at IS NULL)
RETURNING n.id

-- name: move_note_chunks
UPDATE note_chunks SET workspace = %(workspace)s, namespace = %(namespace)s WHERE note_id = ANY(%(ids)s)
