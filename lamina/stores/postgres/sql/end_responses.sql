-- A memory write ends its agent's responses, one without an agent everybody's; and it counts as one of the workspace's.
WITH locked AS (
    SELECT tenant, workspace, agent FROM response_agents
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent IN ('', coalesce(%(agent_id)s::text, ''))
    ORDER BY agent
    FOR UPDATE
)
UPDATE response_agents r
SET epoch = r.epoch + (r.agent = coalesce(%(agent_id)s::text, ''))::int, writes = r.writes + 1
FROM locked
WHERE (r.tenant, r.workspace, r.agent) = (locked.tenant, locked.workspace, locked.agent)
