DELETE FROM memory_profiles
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent_id = %(agent_id)s
