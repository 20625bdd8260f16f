SELECT agent FROM response_agents WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent <> ''
LIMIT %(limit)s
