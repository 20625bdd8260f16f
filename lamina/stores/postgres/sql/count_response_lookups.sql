-- Counts are halved when there are many, so that the rate follows the present. Rows are locked in the order of their
-- names, so that two replicas cannot deadlock.
WITH counted AS (
    SELECT a.tenant, a.workspace, a.agent,
           a.lookups + c.lookups AS lookups, a.hits + c.hits AS hits,
           CASE WHEN a.lookups + c.lookups > %(most)s THEN 2 ELSE 1 END AS share
    FROM unnest(%(tenants)s::text[], %(workspaces)s::text[], %(agents)s::text[], %(lookups)s::bigint[],
                %(hits)s::bigint[]) AS c (tenant, workspace, agent, lookups, hits)
    JOIN response_agents a ON a.tenant = c.tenant AND a.workspace = c.workspace AND a.agent = c.agent
    ORDER BY a.tenant, a.workspace, a.agent
    FOR UPDATE OF a
)
UPDATE response_agents a SET lookups = counted.lookups / counted.share, hits = counted.hits / counted.share
FROM counted
WHERE (a.tenant, a.workspace, a.agent) = (counted.tenant, counted.workspace, counted.agent)
