-- name: insert_agent_turn
-- In the transaction that holds the session's row: the same turn comes here twice one after another. A turn without
-- messages stands after the last message of the session.
INSERT INTO agent_turns (
    id, tenant, workspace, namespace, session_id, user_id, agent_id, witness, last_position, digest, tools, failed_calls,
    provider, model, input_tokens, cached_tokens, output_tokens, cost, latency_ms, succeeded, score, comment, recorded_at
)
SELECT %(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(session_id)s, %(user_id)s, %(agent_id)s, %(witness)s,
       coalesce(%(last_position)s::bigint, s.next_position - 1), %(digest)s, %(tools)s, %(failed_calls)s,
       %(provider)s, %(model)s, %(input_tokens)s, %(cached_tokens)s, %(output_tokens)s, %(cost)s, %(latency_ms)s,
       %(succeeded)s, %(score)s, %(comment)s, %(now)s
FROM sessions s
WHERE s.tenant = %(tenant)s AND s.workspace = %(workspace)s AND s.namespace = %(namespace)s
  AND s.session_id = %(session_id)s
ON CONFLICT DO NOTHING

-- name: list_agent_turns
SELECT id, session_id, user_id, agent_id, last_position, tools, failed_calls, provider, model, input_tokens,
       cached_tokens, output_tokens, cost, latency_ms, succeeded, score, comment, recorded_at
FROM agent_turns
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
  AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
  AND (%(agent_id)s::text IS NULL OR agent_id = %(agent_id)s)
  AND (recorded_at, id) < (coalesce(%(after_time)s::timestamptz, 'infinity'),
                       coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY recorded_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s

-- name: sum_agent_turns
-- By agent and model, the most expensive first.
SELECT agent_id, provider, model, count(*) AS turns, sum(cardinality(tools))::bigint AS tool_calls,
       sum(failed_calls)::bigint AS failed_calls, coalesce(sum(input_tokens), 0)::bigint AS input_tokens,
       coalesce(sum(cached_tokens), 0)::bigint AS cached_tokens,
       coalesce(sum(output_tokens), 0)::bigint AS output_tokens, coalesce(sum(cost), 0)::float8 AS cost,
       avg(latency_ms)::float8 AS mean_latency_ms, count(*) FILTER (WHERE succeeded) AS successes,
       count(*) FILTER (WHERE NOT succeeded) AS failures
FROM agent_turns
WHERE tenant = %(tenant)s AND recorded_at > %(since)s
  AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
GROUP BY agent_id, provider, model
ORDER BY cost DESC, turns DESC, agent_id, provider, model
LIMIT %(limit)s

-- name: list_evidence
SELECT id, session_id, user_id, agent_id, last_position, tools, failed_calls, provider, model, input_tokens,
       cached_tokens, output_tokens, cost, latency_ms, succeeded, score, comment, recorded_at
FROM agent_turns
WHERE tenant = %(tenant)s AND procedure_id = %(procedure_id)s
  AND (recorded_at, id) < (coalesce(%(after_time)s::timestamptz, 'infinity'),
                       coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY recorded_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s
