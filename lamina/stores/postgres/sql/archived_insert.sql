INSERT INTO archived_notes (id, tenant, workspace, namespace, user_id, content_hash, file, run_id, archived_at)
SELECT id, tenant, workspace, namespace, user_id, content_hash, %(file)s, %(run_id)s, %(moment)s
FROM notes
WHERE id = ANY(%(ids)s)
