-- What nobody will be given any more, of one workspace.
WITH locked AS (
    SELECT r.id
    FROM responses r
    LEFT JOIN response_agents a ON a.tenant = r.tenant AND a.workspace = r.workspace AND a.agent = r.agent
    LEFT JOIN response_agents w ON w.tenant = r.tenant AND w.workspace = r.workspace AND w.agent = ''
    WHERE r.tenant = %(tenant)s AND r.workspace = %(workspace)s
      AND (r.expires_at <= %(cutoff)s OR r.agent_epoch IS DISTINCT FROM a.epoch
           OR CASE WHEN %(by_workspace)s THEN r.workspace_writes IS DISTINCT FROM w.writes
                   ELSE r.workspace_epoch IS DISTINCT FROM w.epoch END)
    ORDER BY r.id
    FOR UPDATE OF r
)
DELETE FROM responses r USING locked WHERE r.id = locked.id
RETURNING r.size_bytes
