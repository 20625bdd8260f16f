-- name: find_exact_response
-- The state of an agent, and its current response to exactly this request, if there is one.
SELECT a.epoch AS agent_epoch, w.epoch AS workspace_epoch, w.writes AS workspace_writes,
       a.prompt_version, a.lookups, a.hits,
       coalesce(beneath.version + (extract(epoch FROM beneath.updated_at) * 1000000)::bigint, 0) AS user_writes,
       r.id, r.query, r.created_at, r.expires_at, r.is_verified,
       r.id IS NOT NULL OR EXISTS (
           SELECT FROM responses o
           WHERE (o.tenant, o.workspace, o.agent) = (a.tenant, a.workspace, a.agent) AND o.agent_epoch = a.epoch
             AND o.expires_at > %(cutoff)s
             AND CASE WHEN %(by_workspace)s THEN o.workspace_writes = w.writes ELSE o.workspace_epoch = w.epoch END
       ) AS has_any
FROM response_agents a
JOIN response_agents w ON w.tenant = a.tenant AND w.workspace = a.workspace AND w.agent = ''
LEFT JOIN profiles beneath
    ON (beneath.tenant, beneath.workspace, beneath.namespace, beneath.user_id) = (%(tenant)s, '', '', %(user_id)s)
LEFT JOIN responses r
    ON r.digest = %(digest)s AND r.tenant = a.tenant AND r.workspace = a.workspace AND r.agent = a.agent
   AND r.agent_epoch = a.epoch AND r.expires_at > %(cutoff)s
   AND CASE WHEN %(by_workspace)s THEN r.workspace_writes = w.writes ELSE r.workspace_epoch = w.epoch END
   AND r.user_profile IS NOT DISTINCT FROM beneath.version || ' ' || extract(epoch FROM beneath.updated_at)
WHERE a.tenant = %(tenant)s AND a.workspace = %(workspace)s AND a.agent = %(agent)s

-- name: find_near_responses
-- Current responses to the nearest questions under exactly these circumstances. A long question has no embedding,
-- and so no distance.
SELECT r.id, r.query, r.created_at, r.expires_at, r.is_verified, 1 - (r.embedding <=> %(embedding)s) AS similarity
FROM responses r
JOIN response_agents a ON a.tenant = r.tenant AND a.workspace = r.workspace AND a.agent = r.agent
JOIN response_agents w ON w.tenant = r.tenant AND w.workspace = r.workspace AND w.agent = ''
LEFT JOIN profiles beneath
    ON (beneath.tenant, beneath.workspace, beneath.namespace, beneath.user_id) = (%(tenant)s, '', '', %(user_id)s)
WHERE r.tenant = %(tenant)s AND r.workspace = %(workspace)s AND r.agent = %(agent)s
  AND r.user_profile IS NOT DISTINCT FROM beneath.version || ' ' || extract(epoch FROM beneath.updated_at)
  AND r.circumstances = %(circumstances)s AND r.generation = %(generation)s
  AND r.agent_epoch = a.epoch AND r.expires_at > %(cutoff)s
  AND CASE WHEN %(by_workspace)s THEN r.workspace_writes = w.writes ELSE r.workspace_epoch = w.epoch END
  -- Vectors of another generation may have another dimension, and cannot be compared.
  AND CASE WHEN r.generation = %(generation)s THEN r.embedding <=> %(embedding)s END <= %(max_distance)s
ORDER BY r.embedding <=> %(embedding)s, r.created_at DESC
LIMIT %(limit)s

-- name: get_response
SELECT response::text AS response FROM responses
WHERE id = %(id)s AND tenant = %(tenant)s AND workspace = %(workspace)s

-- name: lease_response
-- One caller refreshes a stale response; if it takes too long, the next one does.
UPDATE responses SET lease_until = %(until)s
WHERE id = %(id)s AND tenant = %(tenant)s AND workspace = %(workspace)s
  AND (lease_until IS NULL OR lease_until <= %(now)s)

-- name: list_response_agents
-- Those with a response that no write has ended; one that expired ends with the next lookup.
SELECT a.agent FROM response_agents a
WHERE a.tenant = %(tenant)s AND a.workspace = %(workspace)s AND a.agent <> ''
  AND EXISTS (SELECT FROM responses r WHERE (r.tenant, r.workspace, r.agent) = (a.tenant, a.workspace, a.agent)
                AND r.agent_epoch = a.epoch)
LIMIT %(limit)s

-- name: insert_response
INSERT INTO responses (id, tenant, workspace, namespace, agent, user_id, circumstances, digest, query, response,
                       generation, embedding, agent_epoch, workspace_epoch, workspace_writes, size_bytes,
                       created_at, expires_at, last_used_at, is_verified, user_profile)
VALUES (%(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(agent)s, %(user_id)s, %(circumstances)s, %(digest)s,
        %(query)s, %(response)s, %(generation)s, %(embedding)s, %(agent_epoch)s, %(workspace_epoch)s,
        %(workspace_writes)s, %(size_bytes)s, %(now)s, %(expires_at)s, %(now)s, %(is_verified)s, %(user_profile)s)

-- name: read_user_profile_state
-- Of the profile of the user in the whole tenant, as a text for responses and as a number that grows with each change.
SELECT version || ' ' || extract(epoch FROM updated_at) AS user_profile,
       version + (extract(epoch FROM updated_at) * 1000000)::bigint AS user_writes
FROM profiles WHERE (tenant, workspace, namespace, user_id) = (%(tenant)s, '', '', %(user_id)s)

-- name: list_responses
-- Responses of a workspace without this request's own, the least recently used first.
SELECT r.id, r.size_bytes,
       r.agent_epoch <> a.epoch OR r.expires_at <= %(cutoff)s
       OR CASE WHEN %(by_workspace)s THEN r.workspace_writes <> w.writes ELSE r.workspace_epoch <> w.epoch END AS is_dead
FROM responses r
JOIN response_agents a ON a.tenant = r.tenant AND a.workspace = r.workspace AND a.agent = r.agent
JOIN response_agents w ON w.tenant = r.tenant AND w.workspace = r.workspace AND w.agent = ''
WHERE r.tenant = %(tenant)s AND r.workspace = %(workspace)s AND r.digest <> %(digest)s
ORDER BY r.last_used_at, r.id

-- name: delete_responses
-- By id, as those who count hits lock them.
WITH locked AS (
    SELECT id FROM responses
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND (id = ANY(%(ids)s) OR digest = %(digest)s)
    ORDER BY id
    FOR UPDATE
)
DELETE FROM responses r USING locked WHERE r.id = locked.id
RETURNING r.size_bytes

-- name: count_response_lookups
-- Counts are halved when they are high, so that the rate follows the present. Rows are locked by name, so that two
-- replicas cannot deadlock.
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

-- name: count_response_hits
-- Rows are locked by id, so that two replicas cannot deadlock.
WITH counted AS (
    SELECT r.id, r.hits + c.hits AS hits, greatest(r.last_used_at, c.last_at) AS last_used_at
    FROM unnest(%(ids)s::uuid[], %(hits)s::bigint[], %(last)s::timestamptz[]) AS c (id, hits, last_at)
    JOIN responses r ON r.id = c.id
    ORDER BY r.id
    FOR UPDATE OF r
)
UPDATE responses r SET hits = counted.hits, last_used_at = counted.last_used_at
FROM counted
WHERE r.id = counted.id

-- name: purge_dead_responses
-- Responses of one workspace that are not served any more.
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

-- name: delete_idle_agents
-- Agents without responses that have put none for a while: sub-agents come and go.
DELETE FROM response_agents a
WHERE a.tenant = %(tenant)s AND a.agent <> '' AND a.put_at < %(idle_since)s
  AND NOT EXISTS (
      SELECT 1 FROM responses r WHERE r.tenant = a.tenant AND r.workspace = a.workspace AND r.agent = a.agent
  )

-- name: purge_responses
-- All responses of a workspace, or of one agent there.
WITH locked AS (
    SELECT id FROM responses
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND (%(agent_id)s::text IS NULL OR agent = %(agent_id)s)
    ORDER BY id
    FOR UPDATE
)
DELETE FROM responses r USING locked WHERE r.id = locked.id
RETURNING r.size_bytes

-- name: erase_user_responses
-- Responses of a user in one workspace, which is locked.
WITH locked AS (
    SELECT id FROM responses
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND user_id = %(user_id)s
    ORDER BY id
    FOR UPDATE
)
DELETE FROM responses r USING locked WHERE r.id = locked.id
RETURNING r.size_bytes

-- name: lock_response_workspace
SELECT epoch FROM response_agents WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent = '' FOR UPDATE

-- name: list_response_workspaces
SELECT tenant, workspace FROM response_agents
WHERE tenant = %(tenant)s AND agent = '' AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
ORDER BY tenant, workspace

-- name: count_responses
SELECT count(*) AS entries,
       coalesce(sum(size_bytes), 0)::bigint AS size_bytes,
       count(*) FILTER (WHERE is_current AND expires_at > %(now)s) AS live,
       count(*) FILTER (WHERE is_current AND expires_at <= %(now)s AND expires_at > %(cutoff)s) AS stale,
       count(*) FILTER (WHERE NOT is_current OR expires_at <= %(cutoff)s) AS expired,
       (SELECT coalesce(sum(lookups), 0)::bigint FROM response_agents
        WHERE tenant = %(tenant)s AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
          AND (%(agent_id)s::text IS NULL OR agent = %(agent_id)s)) AS lookups,
       (SELECT coalesce(sum(hits), 0)::bigint FROM response_agents
        WHERE tenant = %(tenant)s AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
          AND (%(agent_id)s::text IS NULL OR agent = %(agent_id)s)) AS hits
FROM (
    SELECT r.size_bytes, r.expires_at,
           coalesce(r.agent_epoch = a.epoch
                    AND CASE WHEN %(by_workspace)s THEN r.workspace_writes = w.writes
                             ELSE r.workspace_epoch = w.epoch END, false) AS is_current
    FROM responses r
    LEFT JOIN response_agents a ON a.tenant = r.tenant AND a.workspace = r.workspace AND a.agent = r.agent
    LEFT JOIN response_agents w ON w.tenant = r.tenant AND w.workspace = r.workspace AND w.agent = ''
    WHERE r.tenant = %(tenant)s AND (%(workspace)s::text IS NULL OR r.workspace = %(workspace)s)
      AND (%(agent_id)s::text IS NULL OR r.agent = %(agent_id)s)
) AS held

-- name: lock_teaching
-- Waits for teaching writes in a workspace, and excludes new ones until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, hashtextextended(%(workspace)s, 1)))

-- name: read_lessons
-- The times of a namespace and of the user's profile in the whole tenant only grow, so that their sum tells every change that was committed.
SELECT max(taught_at) AS last_at, coalesce(sum((extract(epoch FROM taught_at) * 1000000)::bigint + version), 0) AS total
FROM (
    SELECT taught_at, 0 AS version FROM epochs WHERE tenant = %(tenant)s AND workspace = %(workspace)s
    UNION ALL
    SELECT updated_at, version FROM profiles
    WHERE (tenant, workspace, namespace, user_id) = (%(tenant)s, '', '', %(user_id)s)
) taught

-- name: lock_response_agents
-- Inserts or locks the rows of the workspace and of the agent, in this order.
INSERT INTO response_agents AS r (tenant, workspace, agent, epoch, writes, put_at)
SELECT %(tenant)s, %(workspace)s, named.agent, begun.seed, begun.seed, %(now)s
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS seed) AS begun
CROSS JOIN (VALUES (''), (%(agent)s)) AS named (agent)
ORDER BY named.agent
ON CONFLICT (tenant, workspace, agent) DO UPDATE SET put_at = excluded.put_at
RETURNING agent, epoch, writes, prompt_version, lookups, hits, bytes

-- name: change_prompt_version
-- Another version makes the agent's responses stale; the first one that is named does not.
UPDATE response_agents
SET epoch = epoch + CASE WHEN prompt_version <> %(prompt_version)s THEN 1 ELSE 0 END,
    prompt_version = %(prompt_version)s
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent = %(agent)s
RETURNING epoch

-- name: add_response_bytes
UPDATE response_agents SET bytes = bytes + %(more_bytes)s
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent = ''

-- name: count_expired
-- Expired rows of the caches' tables, and answers under Idempotency-Keys.
SELECT (SELECT count(*) FROM responses WHERE tenant = %(tenant)s AND expires_at <= %(responses)s)
     + (SELECT count(*) FROM embedding_cache WHERE tenant = %(tenant)s AND last_used_at <= %(embeddings)s)
     + (SELECT count(*) FROM provider_cache_metrics WHERE tenant = %(tenant)s AND recorded_at <= %(providers)s)
     + (SELECT count(*) FROM idempotency_keys WHERE tenant = %(tenant)s AND created_at <= %(answers)s)
       AS expired
