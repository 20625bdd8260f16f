SELECT id, tenant, workspace, namespace, user_id, file, run_id, archived_at
FROM archived_notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
ORDER BY id
LIMIT %(limit)s OFFSET %(offset)s
