SELECT id, tenant, workspace, namespace, user_id, file, run_id, archived_at
FROM archived_notes
WHERE file = %(file)s
ORDER BY id
