SELECT id, tenant, workspace, namespace, user_id, file, run_id, archived_at
FROM archived_notes
WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)
ORDER BY id
