SELECT id, tenant, workspace, namespace, user_id, file, run_id, archived_at
FROM archived_notes a
WHERE tenant = %(tenant)s AND user_id = %(user_id)s
  AND file = (
      SELECT min(file) FROM archived_notes
      WHERE tenant = %(tenant)s AND user_id = %(user_id)s AND file <> ALL(%(but)s::text[])
  )
ORDER BY id
