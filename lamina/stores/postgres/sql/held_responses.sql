-- What takes room in a workspace beside this request's own response, the least recently used first.
SELECT r.id, r.size_bytes,
       r.agent_epoch <> a.epoch OR r.expires_at <= %(cutoff)s
       OR CASE WHEN %(by_workspace)s THEN r.workspace_writes <> w.writes ELSE r.workspace_epoch <> w.epoch END AS is_dead
FROM responses r
JOIN response_agents a ON a.tenant = r.tenant AND a.workspace = r.workspace AND a.agent = r.agent
JOIN response_agents w ON w.tenant = r.tenant AND w.workspace = r.workspace AND w.agent = ''
WHERE r.tenant = %(tenant)s AND r.workspace = %(workspace)s AND r.digest <> %(digest)s
ORDER BY r.last_used_at, r.id
