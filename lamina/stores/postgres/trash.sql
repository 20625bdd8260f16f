-- name: discard_note
INSERT INTO trash (tenant, id, workspace, namespace, user_id, agent_id, kind, content_hash, deleted_at, rows,
                   title, operation_id)
SELECT tenant, id, workspace, namespace, user_id, agent_id, 'note', content_hash, %(now)s,
       json_build_object('evidence', %(evidence)s::json, 'entities', %(entities)s::json),
       left(content, %(title_chars)s), %(operation_id)s
FROM notes WHERE tenant = %(tenant)s AND id = %(id)s
ON CONFLICT (tenant, id) DO UPDATE SET deleted_at = excluded.deleted_at, operation_id = excluded.operation_id,
    title = excluded.title, rows = excluded.rows

-- name: list_to_discard
-- A memory with all of its user's that leaves the graph with it: its passages, and the notes that were made from it. What
-- another user made from it stays theirs alone: it is read again when it comes back.
WITH RECURSIVE made (id) AS (
    SELECT %(id)s::uuid
    UNION
    SELECT n.id
    FROM made m JOIN note_sources s ON s.source_id = m.id JOIN notes n ON n.id = s.note_id
    WHERE n.user_id IS NOT DISTINCT FROM (SELECT user_id FROM notes WHERE id = %(id)s)
)
SELECT id FROM made
UNION
SELECT id FROM passages WHERE document_id = %(id)s

-- name: hand_on_told
UPDATE trash t SET rows = json_build_object(
    'evidence', (SELECT coalesce(json_agg(one), '[]') FROM (
        SELECT json_array_elements(coalesce(t.rows -> 'evidence', '[]')) AS one
        UNION ALL SELECT json_array_elements(%(evidence)s::json)) evidence),
    'entities', (SELECT coalesce(json_agg(one), '[]') FROM (
        SELECT json_array_elements(coalesce(t.rows -> 'entities', '[]')) AS one
        UNION ALL SELECT json_array_elements(%(entities)s::json)) entities))
WHERE t.tenant = %(tenant)s AND t.kind = 'note' AND t.user_id IS NOT DISTINCT FROM %(user_id)s
  AND t.id IN (SELECT source_id FROM note_sources WHERE note_id = ANY(%(ids)s))

-- name: discard_procedure
-- One that a user's runs taught, and that all users share since, is nobody's.
INSERT INTO trash (tenant, id, workspace, namespace, user_id, agent_id, kind, content_hash, deleted_at,
                   title, operation_id)
SELECT tenant, id, workspace, namespace, CASE WHEN is_private THEN user_id END, agent_id, 'procedure', content_hash,
       %(now)s, left(trigger, %(title_chars)s), %(operation_id)s
FROM procedures WHERE tenant = %(tenant)s AND id = %(id)s
ON CONFLICT (tenant, id) DO UPDATE SET deleted_at = excluded.deleted_at, operation_id = excluded.operation_id,
    title = excluded.title

-- name: discard_message
-- Before it is deleted, with its vectors.
INSERT INTO trash (tenant, id, workspace, namespace, user_id, agent_id, kind, content_hash, deleted_at, rows,
                   title, operation_id)
SELECT m.tenant, m.id, m.workspace, m.namespace, m.user_id, m.agent_id, 'message', m.content_hash, %(now)s,
       json_build_object(
           'evidence', %(evidence)s::json, 'entities', %(entities)s::json,
           'messages', json_build_array(row_to_json(m)),
           'message_chunks', (SELECT coalesce(json_agg(row_to_json(c)), '[]') FROM message_chunks c
                              WHERE c.message_id = m.id),
           'compacted_chunks', (SELECT coalesce(json_agg(row_to_json(c)), '[]') FROM compacted_chunks c
                                WHERE c.message_id = m.id)),
       left(m.content, %(title_chars)s), %(operation_id)s
FROM messages m WHERE m.tenant = %(tenant)s AND m.id = %(id)s AND NOT m.is_summary
ON CONFLICT (tenant, id) DO UPDATE SET deleted_at = excluded.deleted_at, operation_id = excluded.operation_id,
    title = excluded.title, rows = excluded.rows

-- name: discard_document
INSERT INTO trash (tenant, id, workspace, namespace, user_id, agent_id, kind, content_hash, deleted_at, rows,
                   title, operation_id)
SELECT d.tenant, d.id, d.workspace, d.namespace, d.user_id, d.agent_id, 'document', d.content_hash, %(now)s,
       json_build_object(
           'evidence', %(evidence)s::json, 'entities', %(entities)s::json,
           'documents', json_build_array(row_to_json(d)),
           'passages', (SELECT coalesce(json_agg(row_to_json(p) ORDER BY p.position), '[]') FROM passages p
                        WHERE p.document_id = d.id),
           'passage_chunks', (SELECT coalesce(json_agg(row_to_json(c)), '[]')
                              FROM passages p JOIN passage_chunks c ON c.passage_id = p.id
                              WHERE p.document_id = d.id)),
       left(d.title, %(title_chars)s), %(operation_id)s
FROM documents d WHERE d.tenant = %(tenant)s AND d.id = %(id)s
ON CONFLICT (tenant, id) DO UPDATE SET deleted_at = excluded.deleted_at, operation_id = excluded.operation_id,
    title = excluded.title, rows = excluded.rows

-- name: list_trash
-- Of a scope: what belongs to its user and to none.
SELECT id, workspace, namespace, user_id, agent_id, kind, title, deleted_at FROM trash
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND (user_id IS NULL OR user_id = %(user_id)s) AND deleted_at > %(cutoff)s
  AND (%(kind)s::text IS NULL OR kind = %(kind)s)
  AND (deleted_at, id) < (coalesce(%(after_time)s::timestamptz, 'infinity'),
                       coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY deleted_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s

-- name: find_trash
SELECT id, workspace, namespace, user_id, agent_id, kind, title, deleted_at, rows FROM trash
WHERE tenant = %(tenant)s AND id = %(id)s AND deleted_at > %(cutoff)s

-- name: take_trash
DELETE FROM trash WHERE tenant = %(tenant)s AND id = %(id)s RETURNING id

-- name: find_discarded
-- Of exactly this scope, by the hash of the text; of several the one that was deleted last.
SELECT DISTINCT ON (content_hash) id, content_hash FROM trash
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND kind = %(kind)s
  AND user_id IS NOT DISTINCT FROM %(user_id)s AND content_hash = ANY(%(hashes)s) AND deleted_at > %(cutoff)s
ORDER BY content_hash, deleted_at DESC

-- name: find_discarded_notes
-- A note with those that were made from it and were deleted with it.
WITH RECURSIVE made (id) AS (
    SELECT %(id)s::uuid
    UNION
    SELECT s.note_id FROM made m JOIN note_sources s ON s.source_id = m.id
)
SELECT n.id, n.content, n.source, n.user_id, n.event_at
FROM made m JOIN notes n ON n.id = m.id
WHERE n.tenant = %(tenant)s AND n.deleted_at IS NOT NULL AND n.merged_into IS NULL
  AND n.deleted_at = (SELECT deleted_at FROM notes WHERE id = %(id)s)
ORDER BY n.id

-- name: lock_with_sources
-- Notes and those that they were made from, in one order: none is deleted or brought back until the transaction ends.
SELECT id FROM notes
WHERE tenant = %(tenant)s
  AND id IN (SELECT unnest(%(ids)s::uuid[]) UNION SELECT source_id FROM note_sources WHERE note_id = ANY(%(ids)s))
ORDER BY id
FOR NO KEY UPDATE

-- name: postpone_notes
-- Of the notes that would come back together, those of which another source is deleted: they wait for the latest of
-- such, as if they had been deleted with that. A merged source lives on in its survivor, and none waits for a source that
-- neither lies in the trash nor was made from one that does.
WITH RECURSIVE waiting (id, deleted_at) AS (
    SELECT s.note_id, m.deleted_at
    FROM note_sources s JOIN notes m ON m.id = s.source_id
    WHERE s.note_id = ANY(%(ids)s) AND m.id <> ALL(%(ids)s) AND m.deleted_at IS NOT NULL AND m.merged_into IS NULL
      AND EXISTS (
          WITH RECURSIVE origin (id) AS (
              SELECT m.id
              UNION
              SELECT o.source_id FROM origin JOIN note_sources o ON o.note_id = origin.id
          )
          SELECT FROM origin JOIN trash t ON t.tenant = %(tenant)s AND t.id = origin.id)
    UNION
    SELECT s.note_id, w.deleted_at FROM waiting w JOIN note_sources s ON s.source_id = w.id
)
UPDATE notes n SET deleted_at = w.deleted_at
FROM (SELECT id, max(deleted_at) AS deleted_at FROM waiting GROUP BY id) w
WHERE n.tenant = %(tenant)s AND n.id = w.id AND n.id = ANY(%(ids)s) AND n.deleted_at IS NOT NULL
RETURNING n.id

-- name: rewrite_notes
-- Notes that came back since they are written again: they last, rest on others and are somebody's words as is written now.
WITH freed AS (
    DELETE FROM note_sources WHERE note_id = ANY(%(ids)s)
)
UPDATE notes n SET expires_at = w.expires_at, speakers = nullif(ARRAY(SELECT jsonb_array_elements_text(w.speakers)), '{}')
FROM unnest(%(ids)s::uuid[], %(expiries)s::timestamptz[], %(speakers)s::jsonb[]) AS w (id, expires_at, speakers)
WHERE n.tenant = %(tenant)s AND n.id = w.id

-- name: revive_notes
-- But for those whose text the scope has again. What would have expired meanwhile stays.
UPDATE notes n SET deleted_at = NULL, expires_at = CASE WHEN n.expires_at > %(now)s THEN n.expires_at END
WHERE n.tenant = %(tenant)s AND n.id = ANY(%(ids)s) AND n.deleted_at IS NOT NULL AND n.merged_into IS NULL
  AND NOT EXISTS (
      SELECT FROM notes o
      WHERE (o.tenant, o.workspace, o.namespace, o.content_hash) = (n.tenant, n.workspace, n.namespace, n.content_hash)
        AND o.user_id IS NOT DISTINCT FROM n.user_id AND o.deleted_at IS NULL)
RETURNING n.id

-- name: revive_procedure
UPDATE procedures SET deleted_at = NULL
WHERE tenant = %(tenant)s AND id = %(id)s AND deleted_at IS NOT NULL
RETURNING id

-- name: revive_session
INSERT INTO sessions (tenant, workspace, namespace, session_id, next_position)
SELECT m.tenant, m.workspace, m.namespace, m.session_id, m.position + 1
FROM json_populate_recordset(NULL::messages, %(rows)s::json) m
ON CONFLICT (tenant, workspace, namespace, session_id)
DO UPDATE SET next_position = greatest(sessions.next_position, excluded.next_position)

-- name: revive_rows
SELECT revive_rows(%(relation)s, %(rows)s)

-- name: revive_compacted
-- Messages whose summary is gone stand for themselves again, with their vectors where they are searched.
WITH alone AS (
    UPDATE messages m SET compacted_at = NULL, compacted_into = NULL
    WHERE m.id = ANY(%(ids)s) AND m.compacted_at IS NOT NULL
      AND NOT EXISTS (SELECT FROM messages s WHERE s.id = m.compacted_into)
    RETURNING m.id
), back AS (
    DELETE FROM compacted_chunks c USING alone WHERE c.message_id = alone.id RETURNING c.*
), put_back AS (
    INSERT INTO message_chunks (
        message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
        generation, embedding)
    SELECT message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
           generation, embedding
    FROM back
    ON CONFLICT DO NOTHING
)
SELECT id FROM alone

-- name: erase_user_trash
DELETE FROM trash WHERE tenant = %(tenant)s AND user_id = %(user_id)s

-- name: erase_from_trash
DELETE FROM trash WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)
