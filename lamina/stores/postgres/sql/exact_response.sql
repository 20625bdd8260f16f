-- Where an agent stands, and the current response to exactly this request, if there is one.
SELECT a.epoch AS agent_epoch, w.epoch AS workspace_epoch, w.writes AS workspace_writes,
       a.prompt_version, a.lookups, a.hits,
       r.id, r.query, r.created_at, r.expires_at
FROM response_agents a
JOIN response_agents w ON w.tenant = a.tenant AND w.workspace = a.workspace AND w.agent = ''
LEFT JOIN responses r
    ON r.digest = %(digest)s AND r.tenant = a.tenant AND r.workspace = a.workspace AND r.agent = a.agent
   AND r.agent_epoch = a.epoch AND r.expires_at > %(cutoff)s
   AND CASE WHEN %(by_workspace)s THEN r.workspace_writes = w.writes ELSE r.workspace_epoch = w.epoch END
WHERE a.tenant = %(tenant)s AND a.workspace = %(workspace)s AND a.agent = %(agent)s
