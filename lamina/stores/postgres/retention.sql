-- name: ended_note_versions
-- Versions that were replaced before the cutoff, so that every state since then stays. Only changed notes have any.
SELECT v.note_id, v.version
FROM notes n
JOIN note_versions v ON v.note_id = n.id
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND n.version > 1 AND n.deleted_at IS NULL
  AND v.written_at <= %(cutoff)s
  AND coalesce((SELECT min(later.written_at) FROM note_versions later
                WHERE later.note_id = v.note_id AND later.version > v.version), n.updated_at) <= %(cutoff)s
  AND (%(after)s::text[] IS NULL OR n.id >= (%(after)s::text[])[1]::uuid)
  AND (%(after)s::text[] IS NULL OR (v.note_id, v.version) > ((%(after)s::text[])[1]::uuid, (%(after)s::text[])[2]::int))
ORDER BY v.note_id, v.version
LIMIT %(limit)s

-- name: end_note_versions
DELETE FROM note_versions v USING unnest(%(ids)s::uuid[], %(versions)s::int[]) AS ended (note_id, version)
WHERE v.note_id = ended.note_id AND v.version = ended.version

-- name: ended_profile_versions
-- As for notes; the last version is the present state.
SELECT v.user_id, v.version
FROM profile_versions v
WHERE v.tenant = %(tenant)s AND v.workspace = %(workspace)s AND v.namespace = %(namespace)s
  AND v.written_at <= %(cutoff)s
  AND (SELECT min(later.written_at) FROM profile_versions later
       WHERE later.tenant = v.tenant AND later.workspace = v.workspace AND later.namespace = v.namespace
         AND later.user_id = v.user_id AND later.version > v.version) <= %(cutoff)s
  AND (%(after)s::text[] IS NULL OR (v.user_id, v.version) > ((%(after)s::text[])[1], (%(after)s::text[])[2]::int))
ORDER BY v.user_id, v.version
LIMIT %(limit)s

-- name: end_profile_versions
DELETE FROM profile_versions v USING unnest(%(ids)s::text[], %(versions)s::int[]) AS ended (user_id, version)
WHERE v.tenant = %(tenant)s AND v.workspace = %(workspace)s AND v.namespace = %(namespace)s
  AND v.user_id = ended.user_id AND v.version = ended.version

-- name: count_ended_user_profile_versions
-- Of users in the whole tenant, which lie in no namespace; the last version is the present state.
SELECT count(*) AS ended FROM profile_versions v
WHERE v.tenant = %(tenant)s AND v.workspace = '' AND v.namespace = '' AND v.written_at <= %(cutoff)s
  AND (SELECT min(later.written_at) FROM profile_versions later
       WHERE later.tenant = v.tenant AND later.workspace = '' AND later.namespace = '' AND later.user_id = v.user_id
         AND later.version > v.version) <= %(cutoff)s

-- name: end_user_profile_versions
DELETE FROM profile_versions v
WHERE v.tenant = %(tenant)s AND v.workspace = '' AND v.namespace = '' AND v.written_at <= %(cutoff)s
  AND (SELECT min(later.written_at) FROM profile_versions later
       WHERE later.tenant = v.tenant AND later.workspace = '' AND later.namespace = '' AND later.user_id = v.user_id
         AND later.version > v.version) <= %(cutoff)s

-- name: ended_notes
-- Deleted before the cutoff: no run can bring them back. One that was merged into another ends with that one.
SELECT n.id
FROM notes n
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND n.deleted_at <= %(cutoff)s AND n.merged_into IS NULL
  AND NOT EXISTS (SELECT FROM notes merged WHERE merged.merged_into = n.id)
  AND (%(after)s::uuid IS NULL OR n.id > %(after)s)
ORDER BY n.id
LIMIT %(limit)s

-- name: end_notes
-- Versions, chunks and sources are deleted with the rows.
DELETE FROM notes n
WHERE n.id = ANY(%(ids)s) AND n.tenant = %(tenant)s AND n.deleted_at <= %(cutoff)s AND n.merged_into IS NULL
RETURNING n.id

-- name: ended_outcomes
-- Reported before the cutoff; the procedure's counts and strength have them all the same.
SELECT o.id
FROM procedures p
JOIN procedure_outcomes o ON o.procedure_id = p.id
WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s AND p.deleted_at IS NULL
  AND o.reported_at <= %(cutoff)s
  AND (%(after)s::uuid IS NULL OR o.id > %(after)s)
ORDER BY o.id
LIMIT %(limit)s

-- name: end_outcomes
DELETE FROM procedure_outcomes o USING procedures p
WHERE o.id = ANY(%(ids)s) AND o.reported_at <= %(cutoff)s AND p.id = o.procedure_id AND p.tenant = %(tenant)s
RETURNING o.id

-- name: ended_procedures
SELECT id FROM procedures
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at <= %(cutoff)s
  AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s

-- name: end_procedures
-- Outcomes and vectors are deleted with the rows.
DELETE FROM procedures WHERE id = ANY(%(ids)s) AND tenant = %(tenant)s AND deleted_at <= %(cutoff)s
RETURNING id

-- name: count_ended_keys
SELECT count(*) AS ended FROM api_keys WHERE tenant = %(tenant)s AND least(revoked_at, expires_at) <= %(cutoff)s

-- name: end_keys
-- With their quotas.
WITH ended AS (
    DELETE FROM api_keys
    WHERE tenant = %(tenant)s AND least(revoked_at, expires_at) <= %(cutoff)s
    RETURNING tenant, id
), of_quotas AS (
    DELETE FROM quotas q USING ended WHERE q.tenant = ended.tenant AND q.subject = ended.id::text
), of_windows AS (
    DELETE FROM quota_windows w USING ended WHERE w.tenant = ended.tenant AND w.subject = ended.id::text
)
SELECT id FROM ended

-- name: count_ended_shares
SELECT count(*) AS ended FROM shares WHERE tenant = %(tenant)s AND least(revoked_at, expires_at) <= %(cutoff)s

-- name: end_shares
DELETE FROM shares WHERE tenant = %(tenant)s AND least(revoked_at, expires_at) <= %(cutoff)s

-- name: count_ended_receipts
SELECT count(*) AS ended FROM erasures
WHERE tenant = %(tenant)s AND state = 'complete' AND completed_at <= %(cutoff)s

-- name: end_receipts
-- Of complete erasures alone; the public keys stay, for receipts that are kept elsewhere.
DELETE FROM erasures
WHERE tenant = %(tenant)s AND state = 'complete' AND completed_at <= %(cutoff)s

-- name: count_empty_places
SELECT count(*) AS places FROM epochs
WHERE tenant = %(tenant)s AND emptied_at <= %(cutoff)s AND emptied_epoch = epoch AND renaming IS NULL
  AND is_empty_place(tenant, workspace, namespace)

-- name: mark_empty_places
-- Busy places are passed over, for they are not empty.
UPDATE epochs e SET emptied_at = %(now)s, emptied_epoch = e.epoch
FROM (
    SELECT tenant, workspace, namespace FROM epochs
    WHERE tenant = %(tenant)s AND emptied_epoch IS DISTINCT FROM epoch
      AND is_empty_place(tenant, workspace, namespace)
    ORDER BY tenant, workspace, namespace
    FOR UPDATE SKIP LOCKED
) empty
WHERE (e.tenant, e.workspace, e.namespace) = (empty.tenant, empty.workspace, empty.namespace)

-- name: end_empty_places
-- Places that were empty long ago and were not written since: no cache has an answer of them. A writer that has not
-- ended yet makes a new row. The mark of a renaming keeps its place closed.
DELETE FROM epochs
WHERE tenant = %(tenant)s AND emptied_at <= %(cutoff)s AND emptied_epoch = epoch AND renaming IS NULL
  AND is_empty_place(tenant, workspace, namespace)

-- name: end_events
DELETE FROM events WHERE tenant = %(tenant)s AND created_at <= %(cutoff)s

-- name: end_operations
-- But for a renaming that was given up halfway and neither went on nor back: its places are closed by its mark.
DELETE FROM operations o
WHERE tenant = %(tenant)s AND state <> 'running' AND completed_at <= %(cutoff)s
  AND NOT (kind = 'rename_scope' AND state = 'failed' AND EXISTS (
      SELECT FROM epochs e
      WHERE e.tenant = o.tenant AND e.workspace IN (o.workspace, o.request ->> 'to_workspace') AND e.renaming = o.id))

-- name: end_trash
DELETE FROM trash WHERE tenant = %(tenant)s AND deleted_at <= %(cutoff)s

-- name: end_feedback
-- On memories that are gone. What lies in the trash may come back, and a document's passages with it.
WITH gone AS (
    SELECT f.memory_id FROM feedback f
    WHERE f.tenant = %(tenant)s
      AND NOT EXISTS (SELECT FROM notes m WHERE m.id = f.memory_id)
      AND NOT EXISTS (SELECT FROM archived_notes m WHERE m.id = f.memory_id)
      AND NOT EXISTS (SELECT FROM messages m WHERE m.id = f.memory_id)
      AND NOT EXISTS (SELECT FROM passages m WHERE m.id = f.memory_id)
      AND NOT EXISTS (SELECT FROM documents m WHERE m.id = f.memory_id)
      AND NOT EXISTS (SELECT FROM procedures m WHERE m.id = f.memory_id)
      AND NOT EXISTS (SELECT FROM entities m WHERE m.id = f.memory_id)
      AND NOT EXISTS (SELECT FROM edges m WHERE m.id = f.memory_id)
      AND NOT EXISTS (SELECT FROM trash t WHERE t.tenant = f.tenant AND t.id = f.memory_id)
      AND NOT EXISTS (SELECT FROM trash t CROSS JOIN json_array_elements(t.rows -> 'passages') passage
                      WHERE t.tenant = f.tenant AND t.kind = 'document' AND passage ->> 'id' = f.memory_id::text)
), unvoted AS (
    DELETE FROM votes v USING gone WHERE v.memory_id = gone.memory_id
)
DELETE FROM feedback f USING gone WHERE f.memory_id = gone.memory_id

-- name: end_letters
DELETE FROM webhook_dead_letters d USING webhooks w
WHERE w.id = d.webhook_id AND w.tenant = %(tenant)s
  AND NOT EXISTS (SELECT FROM events e WHERE e.tenant = w.tenant AND e.seq = d.seq)
