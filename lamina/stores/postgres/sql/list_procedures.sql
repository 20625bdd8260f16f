SELECT id, workspace, namespace, agent_id, trigger, action, tags, metadata, source, strength, successes, failures,
       created_at, updated_at, last_used_at
FROM procedures p
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND /*filters*/ true
ORDER BY created_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s
