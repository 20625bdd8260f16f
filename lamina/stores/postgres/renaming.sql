-- fragment: in_place
-- Of a namespace, or of a whole workspace.
tenant = %(tenant)s AND workspace = %(workspace)s AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)

-- fragment: in_session
tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s

-- fragment: shared_with_place
(from_workspace = %(workspace)s AND (%(namespace)s::text IS NULL OR from_namespace = %(namespace)s)
 OR to_workspace = %(workspace)s AND %(namespace)s::text IS NULL)

-- name: find_renaming_rivals
-- Operations that are not over and reach one of the workspaces; also renamings that were given up halfway there, beside
-- the one that goes on.
SELECT id, state FROM operations o
WHERE tenant = %(tenant)s AND id <> %(operation)s AND id IS DISTINCT FROM %(halted)s
  AND (workspace IS NULL OR workspace IN (%(workspace)s, %(to_workspace)s)
       OR request ->> 'to_workspace' IN (%(workspace)s, %(to_workspace)s))
  AND (state = 'running' OR (kind = 'rename_scope' AND state = 'failed' AND EXISTS (
      SELECT FROM epochs e
      WHERE e.tenant = o.tenant AND e.workspace IN (o.workspace, o.request ->> 'to_workspace') AND e.renaming = o.id)))
ORDER BY id
LIMIT 1

-- name: find_renaming_of
-- One that is not over, or was given up halfway, and touches a workspace of an operation; of the tenant where the
-- operation names none.
SELECT id FROM operations o
WHERE tenant = %(tenant)s AND kind = 'rename_scope'
  AND (state = 'running' OR (state = 'failed' AND EXISTS (
      SELECT FROM epochs e
      WHERE e.tenant = o.tenant AND e.workspace IN (o.workspace, o.request ->> 'to_workspace') AND e.renaming = o.id)))
  AND (%(workspace)s::text IS NULL
       OR ARRAY[workspace, request ->> 'to_workspace'] && ARRAY[%(workspace)s, %(to_workspace)s]::text[])
ORDER BY id
LIMIT 1

-- name: lock_renamings
-- Of a tenant, until the transaction ends: of two that are ordered at a time, the second sees the first.
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, 3))

-- name: find_halted_renaming
-- One between the same places, either way, that was given up halfway: it may be ordered again, or back. Its places are
-- closed until then; those of one that went on, or back, carry another mark, or none.
SELECT id FROM operations o
WHERE tenant = %(tenant)s AND kind = 'rename_scope' AND state = 'failed' AND session_id IS NULL
  AND EXISTS (
      SELECT FROM epochs e
      WHERE e.tenant = o.tenant AND e.workspace IN (%(workspace)s, %(to_workspace)s) AND e.renaming = o.id)
  AND ((workspace, coalesce(namespace, ''), request ->> 'to_workspace', coalesce(request ->> 'to_namespace', ''))
       IN ((%(workspace)s, coalesce(%(namespace)s::text, ''), %(to_workspace)s, coalesce(%(to_namespace)s::text, '')),
           (%(to_workspace)s, coalesce(%(to_namespace)s::text, ''), %(workspace)s, coalesce(%(namespace)s::text, ''))))
LIMIT 1

-- name: find_later_renaming
-- Of one of the names of a renaming that is to be undone, or of the place that it lies in.
SELECT id FROM operations
WHERE tenant = %(tenant)s AND kind = 'rename_scope' AND state <> 'failed' AND id <> ALL(%(besides)s::uuid[])
  AND requested_at >= %(undone_at)s
  AND ARRAY[workspace, request ->> 'to_workspace'] && ARRAY[%(workspace)s, %(to_workspace)s]::text[]
  AND (namespace IS NULL
       OR ARRAY[namespace, request ->> 'to_namespace'] && ARRAY[%(namespace)s, %(to_namespace)s]::text[])
  AND (session_id IS NULL
       OR ARRAY[session_id, request ->> 'to_session'] && ARRAY[%(session_id)s, %(to_session)s]::text[])
ORDER BY id
LIMIT 1

-- name: find_contents_of_place
-- Kinds of things in a namespace, or anywhere in a workspace, that a renaming would bring together with its own. A session
-- without messages is nothing: a deletion leaves it, and it goes when the place gets another's name.
SELECT array_remove(ARRAY[
    CASE WHEN EXISTS (SELECT FROM notes WHERE /*in_place*/ AND deleted_at IS NULL) THEN 'notes' END,
    CASE WHEN EXISTS (SELECT FROM messages WHERE /*in_place*/) THEN 'messages' END,
    CASE WHEN EXISTS (SELECT FROM documents WHERE /*in_place*/) THEN 'documents' END,
    CASE WHEN EXISTS (SELECT FROM procedures WHERE /*in_place*/ AND deleted_at IS NULL) THEN 'procedures' END,
    CASE WHEN EXISTS (SELECT FROM entities WHERE /*in_place*/) THEN 'entities' END,
    CASE WHEN EXISTS (SELECT FROM profiles WHERE /*in_place*/) THEN 'profiles' END,
    CASE WHEN EXISTS (SELECT FROM profile_versions WHERE /*in_place*/) THEN 'versions of profiles' END,
    CASE WHEN EXISTS (SELECT FROM archived_notes WHERE /*in_place*/) THEN 'archived notes' END,
    CASE WHEN EXISTS (SELECT FROM shares WHERE tenant = %(tenant)s AND revoked_at IS NULL
                   AND (expires_at IS NULL OR expires_at > statement_timestamp())
                   AND /*shared_with_place*/) THEN 'shares' END,
    CASE WHEN %(namespace)s::text IS NULL
              AND EXISTS (SELECT FROM memory_profiles WHERE tenant = %(tenant)s AND workspace = %(workspace)s)
         THEN 'memory profiles' END,
    CASE WHEN %(namespace)s::text IS NULL
              AND EXISTS (SELECT FROM workspace_settings WHERE tenant = %(tenant)s AND workspace = %(workspace)s)
         THEN 'settings' END,
    CASE WHEN %(namespace)s::text IS NULL
              AND EXISTS (SELECT FROM webhooks WHERE tenant = %(tenant)s AND workspace = %(workspace)s)
         THEN 'webhooks' END
], NULL)::text[] AS kinds

-- name: drop_empty_sessions
-- Of the new name, which the sessions of the old one may have, too.
DELETE FROM sessions s
WHERE tenant = %(tenant)s AND workspace = %(to_workspace)s
  AND (%(to_namespace)s::text IS NULL OR namespace = %(to_namespace)s)
  AND NOT EXISTS (SELECT FROM messages m
                  WHERE (m.tenant, m.workspace, m.namespace, m.session_id)
                      = (s.tenant, s.workspace, s.namespace, s.session_id))

-- name: revoke_expired_shares
-- Of the new name: they read nothing, and one like them comes with the old name.
UPDATE shares SET revoked_at = statement_timestamp()
WHERE tenant = %(tenant)s AND revoked_at IS NULL AND expires_at <= statement_timestamp()
  AND (from_workspace = %(to_workspace)s AND (%(to_namespace)s::text IS NULL OR from_namespace = %(to_namespace)s)
       OR to_workspace = %(to_workspace)s AND %(to_namespace)s::text IS NULL)

-- name: has_keys_that_gain
-- Valid ones that are bound to the new name and not to the old one, and were not there before the renaming that this
-- one undoes.
SELECT EXISTS (
    SELECT FROM api_keys
    WHERE tenant = %(tenant)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
      AND (%(undone_at)s::timestamptz IS NULL OR created_at > %(undone_at)s)
      AND CASE WHEN %(namespace)s::text IS NULL
          THEN %(to_workspace)s = ANY(workspaces) AND NOT %(workspace)s = ANY(workspaces)
          ELSE %(to_namespace)s = ANY(namespaces) AND NOT %(namespace)s = ANY(namespaces)
               AND (workspaces IS NULL OR %(workspace)s = ANY(workspaces)) END
) AS has_some

-- name: find_contents_of_session
SELECT array_remove(ARRAY[
    CASE WHEN EXISTS (SELECT FROM messages WHERE /*in_session*/) THEN 'messages' END,
    CASE WHEN EXISTS (SELECT FROM notes WHERE /*in_session*/ AND deleted_at IS NULL) THEN 'notes' END,
    CASE WHEN EXISTS (SELECT FROM archived_notes WHERE /*in_session*/) THEN 'archived notes' END
], NULL)::text[] AS kinds

-- name: lock_session_row
SELECT FROM sessions
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(to_session)s
FOR UPDATE

-- name: drop_session_row
DELETE FROM sessions
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(to_session)s

-- name: has_archived_notes
SELECT EXISTS (SELECT FROM archived_notes WHERE /*in_place*/) AS has_some

-- name: has_archived_notes_of_any_session
-- Of which the file alone says the session.
SELECT EXISTS (
    SELECT FROM archived_notes
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id IS NULL
) AS has_some

-- name: count_besides
-- Beside the memories: everything that a renaming of a namespace or a workspace touches, and the keys that it leaves.
SELECT (SELECT count(*) FROM (SELECT FROM sessions WHERE /*in_place*/ LIMIT %(most)s) counted) AS sessions,
       (SELECT count(*) FROM (SELECT FROM entities WHERE /*in_place*/ LIMIT %(most)s) counted) AS entities,
       (SELECT count(*) FROM (SELECT FROM profiles WHERE /*in_place*/ LIMIT %(most)s) counted) AS profiles,
       (SELECT count(*) FROM (SELECT FROM trash WHERE /*in_place*/ LIMIT %(most)s) counted) AS in_trash,
       (SELECT count(*) FROM shares WHERE tenant = %(tenant)s AND revoked_at IS NULL AND /*shared_with_place*/) AS shares,
       (SELECT count(*) FROM webhooks WHERE tenant = %(tenant)s AND workspace = %(workspace)s
            AND %(namespace)s::text IS NULL) AS webhooks,
       (SELECT count(*) FROM api_keys WHERE tenant = %(tenant)s AND revoked_at IS NULL
            AND CASE WHEN %(namespace)s::text IS NULL
                THEN %(workspace)s = ANY(workspaces) AND NOT %(to_workspace)s = ANY(workspaces)
                ELSE %(namespace)s = ANY(namespaces) AND NOT %(to_namespace)s = ANY(namespaces)
                     AND workspaces = ARRAY[%(workspace)s::text] END) AS keys,
       (SELECT count(*) FROM api_keys WHERE tenant = %(tenant)s AND revoked_at IS NULL
            AND %(namespace)s::text IS NOT NULL AND %(namespace)s = ANY(namespaces)
            AND (workspaces IS NULL OR workspaces @> ARRAY[%(workspace)s::text])
            AND workspaces IS DISTINCT FROM ARRAY[%(workspace)s::text]) AS keys_left

-- name: lock_workspace_alone
-- Until the commit, in a statement of its own: the next one sees the namespaces of all writes that it waited for.
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, hashtextextended(%(workspace)s, 5)))

-- name: close_place
-- Writes in a namespace, or in all of a workspace, wait from the commit on. In the order of the key.
INSERT INTO epochs AS e (tenant, workspace, namespace, renaming)
SELECT %(tenant)s, %(workspace)s, namespace, %(renaming)s
FROM (SELECT coalesce(%(namespace)s::text, '') AS namespace
      UNION
      SELECT namespace FROM epochs
      WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND %(namespace)s::text IS NULL) places
ORDER BY namespace
ON CONFLICT (tenant, workspace, namespace) DO UPDATE SET epoch = e.epoch + 1, renaming = excluded.renaming

-- name: keep_former_names
-- Of the place that a renaming made, or to which notes moved, with those that it had before; of very many none is added.
UPDATE epochs n
SET former = (
    SELECT jsonb_agg(DISTINCT place)
    FROM jsonb_array_elements(
        coalesce(n.former, '[]') || coalesce(o.former, '[]') || jsonb_build_array(jsonb_build_array(o.workspace, o.namespace))
    ) AS place)
FROM epochs o
WHERE o.tenant = %(tenant)s AND o.workspace = %(workspace)s AND o.namespace <> ''
  AND (%(namespace)s::text IS NULL OR o.namespace = %(namespace)s)
  AND n.tenant = o.tenant AND n.workspace = %(to_workspace)s AND n.namespace = coalesce(%(to_namespace)s::text, o.namespace)
  AND jsonb_array_length(coalesce(n.former, '[]')) < 200

-- name: open_places
UPDATE epochs SET renaming = NULL, epoch = epoch + 1
WHERE tenant = %(tenant)s AND workspace IN (%(workspace)s, %(to_workspace)s) AND renaming = %(renaming)s

-- name: lock_notes_to_rename
-- A page of live ones: the index of cold notes is told where they were before they move.
SELECT id FROM notes WHERE /*in_place*/ AND deleted_at IS NULL
ORDER BY workspace, namespace, id
LIMIT %(limit)s
FOR UPDATE

-- name: lock_rows_to_rename
-- A page of a table, by id as everybody who locks several rows of it: nobody waits in a circle.
SELECT id FROM /*table*/ WHERE /*in_place*/
ORDER BY workspace, namespace, id
LIMIT %(limit)s
FOR UPDATE

-- name: lock_passages_to_rename
-- Of documents; a job that embeds them locks no document.
SELECT id FROM passages WHERE document_id = ANY(%(ids)s) ORDER BY id FOR UPDATE

-- name: lock_procedures_to_rename
-- Deleted ones, too; each of the two has an index of its own.
SELECT id FROM procedures
WHERE tenant = %(tenant)s AND id = ANY(
    ARRAY(SELECT id FROM procedures WHERE /*in_place*/ AND deleted_at IS NULL LIMIT %(limit)s)
    || ARRAY(SELECT id FROM procedures WHERE /*in_place*/ AND deleted_at IS NOT NULL LIMIT %(limit)s))
ORDER BY id
FOR UPDATE

-- fragment: parts_of_notes
chunks AS (
    UPDATE note_chunks c SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, c.namespace)
    FROM moved WHERE c.note_id = moved.id
), links AS (
    UPDATE memory_links l SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, l.namespace)
    FROM moved WHERE l.from_id = moved.id
)

-- name: rename_notes
-- With notes that were merged into them.
WITH moved AS (
    SELECT id FROM notes WHERE id = ANY(%(ids)s) UNION SELECT id FROM notes WHERE merged_into = ANY(%(ids)s)
), /*parts_of_notes*/
UPDATE notes n SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, n.namespace)
FROM moved WHERE n.id = moved.id AND n.tenant = %(tenant)s
RETURNING n.id, n.namespace, n.deleted_at IS NULL AS is_counted

-- name: rename_deleted_notes
-- With notes that were merged into them: those are in no index of a place.
WITH deleted AS (
    SELECT id FROM notes WHERE /*in_place*/ AND deleted_at IS NOT NULL AND merged_into IS NULL
    LIMIT %(limit)s
    FOR UPDATE
), moved AS (
    SELECT id FROM deleted UNION SELECT n.id FROM notes n JOIN deleted d ON n.merged_into = d.id
), /*parts_of_notes*/
UPDATE notes n SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, n.namespace)
FROM moved WHERE n.id = moved.id
RETURNING n.id, n.namespace, false AS is_counted

-- name: rename_messages
WITH chunks AS (
    UPDATE message_chunks c SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, c.namespace)
    WHERE c.message_id = ANY(%(ids)s)
), compacted AS (
    UPDATE compacted_chunks c SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, c.namespace)
    WHERE c.message_id = ANY(%(ids)s)
), links AS (
    UPDATE memory_links l SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, l.namespace)
    WHERE l.from_id = ANY(%(ids)s)
)
UPDATE messages m SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, m.namespace)
WHERE m.id = ANY(%(ids)s) AND m.tenant = %(tenant)s
RETURNING m.id, m.namespace, true AS is_counted

-- name: rename_documents
WITH parts AS (
    UPDATE passages p SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, p.namespace)
    WHERE p.document_id = ANY(%(ids)s)
    RETURNING p.id, p.namespace
), chunks AS (
    UPDATE passage_chunks c SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, c.namespace)
    FROM parts WHERE c.passage_id = parts.id
), links AS (
    UPDATE memory_links l SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, l.namespace)
    FROM parts WHERE l.from_id = parts.id
), renamed AS (
    UPDATE documents d SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, d.namespace)
    WHERE d.id = ANY(%(ids)s) AND d.tenant = %(tenant)s
    RETURNING d.id, d.namespace
)
SELECT id, namespace, true AS is_counted FROM renamed UNION ALL SELECT id, namespace, false FROM parts

-- name: rename_procedures
WITH vectors AS (
    UPDATE procedure_embeddings e SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, e.namespace)
    WHERE e.procedure_id = ANY(%(ids)s)
)
UPDATE procedures p SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, p.namespace)
WHERE p.id = ANY(%(ids)s) AND p.tenant = %(tenant)s
RETURNING p.id, p.namespace, p.deleted_at IS NULL AS is_counted

-- name: rename_entities
-- With their names, and the facts of which they are the subjects.
WITH names AS (
    UPDATE entity_names n SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, n.namespace)
    WHERE n.entity_id = ANY(%(ids)s)
), vectors AS (
    UPDATE entity_embeddings e SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, e.namespace)
    WHERE e.entity_id = ANY(%(ids)s)
), links AS (
    UPDATE memory_links l SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, l.namespace)
    WHERE l.from_id = ANY(%(ids)s)
), facts AS (
    UPDATE edges e SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, e.namespace)
    WHERE e.from_id = ANY(%(ids)s)
)
UPDATE entities e SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, e.namespace)
WHERE e.id = ANY(%(ids)s) AND e.tenant = %(tenant)s
RETURNING e.id, e.namespace, true AS is_counted

-- name: rename_rows
-- A page of a table whose rows are nothing that an index or the graph holds.
UPDATE /*table*/ r SET workspace = %(to_workspace)s, namespace = coalesce(%(to_namespace)s, r.namespace)
WHERE r.ctid = ANY(ARRAY(
    SELECT ctid FROM /*table*/ WHERE /*in_place*/
    LIMIT %(limit)s
    FOR UPDATE))
RETURNING NULL::uuid AS id, r.namespace, true AS is_counted

-- name: rename_profiles_of_agents
UPDATE memory_profiles SET workspace = %(to_workspace)s WHERE tenant = %(tenant)s AND workspace = %(workspace)s

-- name: rename_settings
UPDATE workspace_settings SET workspace = %(to_workspace)s WHERE tenant = %(tenant)s AND workspace = %(workspace)s

-- name: keep_events_of_webhooks
-- Of the old name, which are not sent yet: they are sent as letters, by the numbers that they have.
INSERT INTO webhook_dead_letters (webhook_id, seq, event_id, attempts, error, is_due)
SELECT w.id, e.seq, e.id, 0, 'its workspace was renamed before it was sent', true
FROM webhooks w JOIN events e ON e.tenant = w.tenant AND e.workspace = w.workspace AND e.seq > w.position
WHERE w.tenant = %(tenant)s AND w.workspace = %(workspace)s AND (w.kinds = '{}' OR e.kind = ANY(w.kinds))
ON CONFLICT DO NOTHING

-- name: rename_webhooks
-- A process that sends for one under the old name holds it no more.
UPDATE webhooks SET workspace = %(to_workspace)s, claimed_by = NULL, claimed_until = NULL
WHERE tenant = %(tenant)s AND workspace = %(workspace)s

-- name: rename_shares
-- Revoked ones, too; the workspaces that read by them are returned.
UPDATE shares
SET from_workspace = CASE WHEN from_workspace = %(workspace)s THEN %(to_workspace)s ELSE from_workspace END,
    from_namespace = CASE WHEN from_workspace = %(workspace)s THEN coalesce(%(to_namespace)s, from_namespace)
                     ELSE from_namespace END,
    to_workspace = CASE WHEN %(namespace)s::text IS NULL AND to_workspace = %(workspace)s THEN %(to_workspace)s
                   ELSE to_workspace END
WHERE tenant = %(tenant)s AND /*shared_with_place*/
RETURNING to_workspace, revoked_at IS NULL AS is_counted

-- name: rename_bounds_of_keys
-- Of keys that name the workspace; or of those that name the namespace, and no workspace beside its own. One that names
-- both keeps both: it reads the same memories as before, and an undo takes nothing from it.
UPDATE api_keys
SET workspaces = CASE WHEN %(namespace)s::text IS NULL THEN array_replace(workspaces, %(workspace)s, %(to_workspace)s)
                 ELSE workspaces END,
    namespaces = CASE WHEN %(namespace)s::text IS NULL THEN namespaces
                 ELSE array_replace(namespaces, %(namespace)s, %(to_namespace)s) END
WHERE tenant = %(tenant)s
  AND CASE WHEN %(namespace)s::text IS NULL
      THEN %(workspace)s = ANY(workspaces) AND NOT %(to_workspace)s = ANY(workspaces)
      ELSE %(namespace)s = ANY(namespaces) AND NOT %(to_namespace)s = ANY(namespaces)
           AND workspaces = ARRAY[%(workspace)s::text] END

-- name: rename_session_row
UPDATE sessions SET session_id = %(to_session)s WHERE /*in_session*/

-- name: lock_messages_of_session
SELECT FROM messages WHERE /*in_session*/
ORDER BY id
FOR UPDATE

-- name: rename_session_of_messages
WITH moved AS (
    UPDATE messages SET session_id = %(to_session)s WHERE /*in_session*/
    RETURNING id
), chunks AS (
    UPDATE message_chunks c SET session_id = %(to_session)s FROM moved WHERE c.message_id = moved.id
), compacted AS (
    UPDATE compacted_chunks c SET session_id = %(to_session)s FROM moved WHERE c.message_id = moved.id
)
SELECT id FROM moved

-- name: rename_session_of_notes
-- Live ones, deleted ones, and those that were merged into any of the namespace: each have an index of their own.
WITH live AS (
    SELECT id FROM notes WHERE /*in_session*/ AND deleted_at IS NULL
), deleted AS (
    SELECT id, session_id FROM notes
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND deleted_at IS NOT NULL AND merged_into IS NULL
), merged AS (
    SELECT m.id FROM notes n JOIN notes m ON m.merged_into = n.id
    WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
      AND m.session_id = %(session_id)s
    UNION
    SELECT m.id FROM deleted d JOIN notes m ON m.merged_into = d.id WHERE m.session_id = %(session_id)s
)
UPDATE notes SET session_id = %(to_session)s
WHERE tenant = %(tenant)s AND id IN (
    SELECT id FROM live UNION SELECT id FROM deleted WHERE session_id = %(session_id)s UNION SELECT id FROM merged)
RETURNING id, deleted_at IS NULL AS is_counted

-- name: rename_session_of_archived_notes
UPDATE archived_notes SET session_id = %(to_session)s WHERE /*in_session*/

-- name: rename_session_of_turns
UPDATE agent_turns SET session_id = %(to_session)s WHERE /*in_session*/

-- name: find_session_in_trash
SELECT id, rows FROM trash
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND kind = 'message'
  AND rows #>> '{messages,0,session_id}' = %(session_id)s
FOR UPDATE

-- name: put_rows_in_trash
UPDATE trash SET rows = %(rows)s WHERE tenant = %(tenant)s AND id = %(id)s
