-- name: list_archived
SELECT id, tenant, workspace, namespace, user_id, session_id, file, run_id, archived_at,
       corrected_at IS NOT NULL AS is_corrected
FROM archived_notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND id > coalesce(%(after_id)s::uuid, '00000000-0000-0000-0000-000000000000')
ORDER BY id
LIMIT %(limit)s OFFSET %(offset)s

-- name: find_archived_of_user
SELECT id, tenant, workspace, namespace, user_id, session_id, file, run_id, archived_at,
       corrected_at IS NOT NULL AS is_corrected
FROM archived_notes a
WHERE tenant = %(tenant)s AND user_id = %(user_id)s
  AND file = (
      SELECT min(file) FROM archived_notes
      WHERE tenant = %(tenant)s AND user_id = %(user_id)s AND file <> ALL(%(but)s::text[])
  )
ORDER BY id

-- name: list_archive_folders
SELECT i.id, f.workspace, f.namespace
FROM archive_folders f, archive_identity i
WHERE f.tenant = %(tenant)s
ORDER BY f.workspace, f.namespace

-- name: lock_archive_folder
-- One writer at a time for the files of a scope, until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended(%(folder)s, 2))

-- name: find_archive_folder
-- The folder of a scope, and whether it has had a file.
SELECT i.id, EXISTS (
    SELECT FROM archive_folders f
    WHERE f.tenant = %(tenant)s AND f.workspace = %(workspace)s AND f.namespace = %(namespace)s
) AS is_begun
FROM archive_identity i

-- name: begin_archive_folder
INSERT INTO archive_folders (tenant, workspace, namespace)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s)
ON CONFLICT DO NOTHING

-- name: end_archive_folder
DELETE FROM archive_folders
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s

-- name: count_archived
SELECT file, count(*) AS notes
FROM archived_notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
GROUP BY file

-- name: find_archived
SELECT id, tenant, workspace, namespace, user_id, session_id, file, run_id, archived_at,
       corrected_at IS NOT NULL AS is_corrected
FROM archived_notes
WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)
ORDER BY id

-- name: list_archived_file
SELECT id, tenant, workspace, namespace, user_id, session_id, file, run_id, archived_at,
       corrected_at IS NOT NULL AS is_corrected
FROM archived_notes
WHERE file = %(file)s
ORDER BY id

-- name: find_file_of_run
SELECT file FROM archived_notes
WHERE run_id = %(run_id)s AND file <> ALL(%(but)s::text[])
ORDER BY file
LIMIT 1

-- name: detach_from_run
-- Notes that an undo cannot restore stay archived, without a run.
UPDATE archived_notes SET run_id = NULL WHERE id = ANY(%(ids)s)

-- name: mark_corrected
-- Notes that were drawn from a message, but for those with a text that it states still, and for pinned ones. A writer may
-- name the message as the source of a note of somebody else's: that one is not drawn from it.
UPDATE archived_notes a SET corrected_at = %(now)s
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND user_id IS NOT DISTINCT FROM %(user_id)s AND drawn_from = %(source)s AND content_hash <> ALL(%(hashes)s::bytea[])
  AND NOT EXISTS (SELECT FROM feedback f
                  WHERE f.tenant = a.tenant AND f.memory_id = a.id AND f.pinned_at IS NOT NULL)
RETURNING id

-- name: delete_archived
DELETE FROM archived_notes WHERE id = ANY(%(ids)s)
