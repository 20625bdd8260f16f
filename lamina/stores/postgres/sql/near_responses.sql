-- The current responses to the nearest questions under exactly these circumstances. A long question has no embedding,
-- and so no distance.
SELECT r.id, r.query, r.created_at, r.expires_at, 1 - (r.embedding <=> %(embedding)s) AS similarity
FROM responses r
JOIN response_agents a ON a.tenant = r.tenant AND a.workspace = r.workspace AND a.agent = r.agent
JOIN response_agents w ON w.tenant = r.tenant AND w.workspace = r.workspace AND w.agent = ''
WHERE r.tenant = %(tenant)s AND r.workspace = %(workspace)s AND r.agent = %(agent)s
  AND r.circumstances = %(circumstances)s AND r.generation = %(generation)s
  AND r.agent_epoch = a.epoch AND r.expires_at > %(cutoff)s
  AND CASE WHEN %(by_workspace)s THEN r.workspace_writes = w.writes ELSE r.workspace_epoch = w.epoch END
  AND r.embedding <=> %(embedding)s <= %(max_distance)s
ORDER BY r.embedding <=> %(embedding)s, r.created_at DESC
LIMIT %(limit)s
