UPDATE response_agents SET bytes = bytes + %(more_bytes)s
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent = ''
