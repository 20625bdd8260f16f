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

-- name: read_merged_notes
-- Notes that are hidden in favour of these, directly or not.
WITH RECURSIVE merged (id) AS (
    SELECT id FROM notes WHERE merged_into = ANY(%(ids)s)
    UNION
    SELECT n.id FROM merged m JOIN notes n ON n.merged_into = m.id
)
SELECT n.id, n.workspace, n.namespace, n.user_id, n.agent_id, n.session_id, n.category, n.content, n.importance,
       n.confidence, n.tags, n.metadata, n.source, n.version, n.hits, n.event_at, n.last_hit_at, n.temperature, n.weight,
       n.expires_at, n.created_at, n.updated_at
FROM merged JOIN notes n ON n.id = merged.id
WHERE n.tenant = %(tenant)s AND n.deleted_at IS NOT NULL

-- name: move_merged_notes
-- They may come back one day, and must do so beside the note that stood for them.
WITH RECURSIVE merged (id) AS (
    SELECT id FROM notes WHERE merged_into = ANY(%(ids)s)
    UNION
    SELECT n.id FROM merged m JOIN notes n ON n.merged_into = m.id
)
UPDATE notes n SET workspace = %(workspace)s, namespace = %(namespace)s
FROM merged
WHERE n.id = merged.id AND n.tenant = %(tenant)s AND n.deleted_at IS NOT NULL AND n.merged_into IS NOT NULL
RETURNING n.id

-- name: move_note_chunks
UPDATE note_chunks SET workspace = %(workspace)s, namespace = %(namespace)s WHERE note_id = ANY(%(ids)s)
