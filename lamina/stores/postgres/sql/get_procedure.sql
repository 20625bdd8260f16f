SELECT id, workspace, namespace, agent_id, trigger, action, tags, metadata, source, strength, successes, failures,
       created_at, updated_at, last_used_at
FROM procedures
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL
