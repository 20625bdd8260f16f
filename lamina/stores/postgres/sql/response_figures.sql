SELECT count(*) AS entries,
       coalesce(sum(size_bytes), 0)::bigint AS size_bytes,
       count(*) FILTER (WHERE is_current AND expires_at > %(now)s) AS live,
       count(*) FILTER (WHERE is_current AND expires_at <= %(now)s AND expires_at > %(cutoff)s) AS stale,
       count(*) FILTER (WHERE NOT is_current OR expires_at <= %(cutoff)s) AS expired,
       (SELECT coalesce(sum(lookups), 0)::bigint FROM response_agents
        WHERE tenant = %(tenant)s AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)) AS lookups,
       (SELECT coalesce(sum(hits), 0)::bigint FROM response_agents
        WHERE tenant = %(tenant)s AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)) AS hits
FROM (
    SELECT r.size_bytes, r.expires_at,
           coalesce(r.agent_epoch = a.epoch
                    AND CASE WHEN %(by_workspace)s THEN r.workspace_writes = w.writes
                             ELSE r.workspace_epoch = w.epoch END, false) AS is_current
    FROM responses r
    LEFT JOIN response_agents a ON a.tenant = r.tenant AND a.workspace = r.workspace AND a.agent = r.agent
    LEFT JOIN response_agents w ON w.tenant = r.tenant AND w.workspace = r.workspace AND w.agent = ''
    WHERE r.tenant = %(tenant)s AND (%(workspace)s::text IS NULL OR r.workspace = %(workspace)s)
) AS held
