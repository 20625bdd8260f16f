-- fragment: note_columns
n.id, n.workspace, n.namespace, n.user_id, n.agent_id, n.session_id, n.category, n.content, n.importance, n.confidence,
n.tags, n.metadata, n.source, n.version, n.hits, n.event_at, n.last_hit_at, n.temperature, n.weight, n.expires_at,
n.created_at, n.updated_at, n.speakers

-- fragment: selected_notes
FROM notes n
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())
  AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
  AND (%(agent_id)s::text IS NULL OR agent_id = %(agent_id)s)
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
  AND /*filters*/ true

-- name: count_selected_notes
SELECT count(*) AS matched /*selected_notes*/

-- name: select_notes
-- A page by id, of notes that were stored by then: what comes later was not meant.
SELECT /*note_columns*/ /*selected_notes*/
  AND created_at <= %(stored_by)s AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s

-- name: lock_selected_notes
-- Those of a page that match still, locked until the transaction ends.
SELECT /*note_columns*/ /*selected_notes*/
  AND id = ANY(%(ids)s)
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

-- fragment: with_merged
-- Notes that are hidden in favour of these, directly or not.
WITH RECURSIVE merged (id) AS (
    SELECT id FROM notes WHERE merged_into = ANY(%(ids)s)
    UNION
    SELECT n.id FROM merged m JOIN notes n ON n.merged_into = m.id
)

-- name: read_merged_notes
/*with_merged*/
SELECT /*note_columns*/
FROM merged JOIN notes n ON n.id = merged.id
WHERE n.tenant = %(tenant)s AND n.deleted_at IS NOT NULL

-- name: move_merged_notes
-- They may come back one day, and must do so beside the note that stood for them.
/*with_merged*/
UPDATE notes n SET workspace = %(workspace)s, namespace = %(namespace)s
FROM merged
WHERE n.id = merged.id AND n.tenant = %(tenant)s AND n.deleted_at IS NOT NULL AND n.merged_into IS NOT NULL
RETURNING n.id

-- name: move_note_chunks
UPDATE note_chunks SET workspace = %(workspace)s, namespace = %(namespace)s WHERE note_id = ANY(%(ids)s)

-- fragment: selected_messages
-- Of exactly the ids of a scope, summaries and compacted ones among them.
FROM messages m
WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR m.user_id = %(user_id)s)
  AND (%(agent_id)s::text IS NULL OR m.agent_id = %(agent_id)s)
  AND (%(session_id)s::text IS NULL OR m.session_id = %(session_id)s)
  AND /*filters*/ true

-- name: count_selected_messages
SELECT count(*) AS matched /*selected_messages*/

-- name: select_messages
-- A page by id of the same, that were stored by a time: what comes later was not meant.
SELECT m.id /*selected_messages*/
  AND m.created_at <= %(stored_by)s AND (%(after)s::uuid IS NULL OR m.id > %(after)s)
ORDER BY m.id
LIMIT %(limit)s

-- name: lock_selected_messages
-- Those of a page that match still, locked until the transaction ends.
SELECT m.id /*selected_messages*/
  AND m.id = ANY(%(ids)s)
ORDER BY m.id
FOR UPDATE

-- fragment: selected_documents
FROM documents d
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR d.user_id = %(user_id)s)
  AND (%(agent_id)s::text IS NULL OR d.agent_id = %(agent_id)s)
  AND /*filters*/ true

-- name: count_selected_documents
SELECT count(*) AS matched /*selected_documents*/

-- name: select_documents
SELECT d.id /*selected_documents*/
  AND d.created_at <= %(stored_by)s AND (%(after)s::uuid IS NULL OR d.id > %(after)s)
ORDER BY d.id
LIMIT %(limit)s

-- name: lock_selected_documents
SELECT d.id, d.user_id, d.agent_id, d.tags, d.path IS NOT NULL AS is_file /*selected_documents*/
  AND d.id = ANY(%(ids)s)
ORDER BY d.id
FOR UPDATE

-- name: tag_documents
-- A document is another one with other tags: the same upload as before takes its place again.
UPDATE documents d
SET tags = ARRAY(SELECT jsonb_array_elements_text(t.tags)), version = d.version + 1, updated_at = %(now)s,
    content_hash = sha256(d.content_hash || convert_to(t.tags::text, 'UTF8'))
FROM unnest(%(ids)s::uuid[], %(tags)s::jsonb[]) AS t (id, tags)
WHERE d.tenant = %(tenant)s AND d.id = t.id

-- name: list_passages_of_documents
SELECT id FROM passages WHERE document_id = ANY(%(ids)s) ORDER BY id

-- name: read_documents_to_move
-- With their passages, as the graph reads them.
SELECT d.title, d.content AS whole, d.source, d.user_id, d.event_at, p.id, p.content
FROM documents d JOIN passages p ON p.document_id = d.id
WHERE d.tenant = %(tenant)s AND d.id = ANY(%(ids)s) AND d.path IS NULL
ORDER BY d.id, p.position

-- name: move_documents
-- Documents of one namespace to another one with their passages, but for files, and for those whose key their user has
-- there.
WITH moved AS (
    UPDATE documents d SET workspace = %(workspace)s, namespace = %(namespace)s
    WHERE d.tenant = %(tenant)s AND d.id = ANY(%(ids)s) AND d.path IS NULL
      AND NOT EXISTS (
          SELECT FROM documents o
          WHERE (o.tenant, o.workspace, o.namespace, o.key) = (d.tenant, %(workspace)s, %(namespace)s, d.key)
            AND o.user_id IS NOT DISTINCT FROM d.user_id)
    RETURNING d.id
), parts AS (
    UPDATE passages p SET workspace = %(workspace)s, namespace = %(namespace)s
    FROM moved WHERE p.document_id = moved.id
    RETURNING p.id, p.document_id
), chunks AS (
    UPDATE passage_chunks c SET workspace = %(workspace)s, namespace = %(namespace)s
    FROM parts WHERE c.passage_id = parts.id
)
SELECT moved.id, array_remove(array_agg(parts.id), NULL) AS passages
FROM moved LEFT JOIN parts ON parts.document_id = moved.id
GROUP BY moved.id
