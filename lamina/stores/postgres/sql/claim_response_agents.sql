-- Make or lock the rows of the workspace and of the agent, in this order.
INSERT INTO response_agents AS r (tenant, workspace, agent, epoch, writes, put_at)
SELECT %(tenant)s, %(workspace)s, named.agent, begun.seed, begun.seed, %(now)s
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS seed) AS begun
CROSS JOIN (VALUES (''), (%(agent)s)) AS named (agent)
ORDER BY named.agent
ON CONFLICT (tenant, workspace, agent) DO UPDATE SET put_at = excluded.put_at
RETURNING agent, epoch, writes, prompt_version, lookups, hits, bytes
