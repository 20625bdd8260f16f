SELECT tenant, workspace FROM response_agents
WHERE agent = '' AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
  AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
ORDER BY tenant, workspace
