-- name: insert_provider_metrics
INSERT INTO provider_cache_metrics (id, tenant, workspace, agent, provider, model, input_tokens, cached_tokens,
                                    recorded_at)
SELECT id, %(tenant)s, workspace, agent, provider, model, input_tokens, cached_tokens, %(now)s
FROM unnest(%(ids)s::uuid[], %(workspaces)s::text[], %(agents)s::text[], %(providers)s::text[], %(models)s::text[],
            %(input_tokens)s::bigint[], %(cached_tokens)s::bigint[])
    AS new (id, workspace, agent, provider, model, input_tokens, cached_tokens)

-- name: read_hit_rates
-- By the mean rate of the calls, the highest first; without input there is none.
SELECT provider, model, count(*) AS calls,
       sum(input_tokens)::bigint AS input_tokens, sum(cached_tokens)::bigint AS cached_tokens,
       avg(hit_rate) AS avg_hit_rate, (sum(cached_tokens) / nullif(sum(input_tokens), 0))::double precision AS token_hit_rate
FROM provider_cache_metrics
WHERE tenant = %(tenant)s AND recorded_at > %(since)s
  AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
  AND (%(agent_id)s::text IS NULL OR agent = %(agent_id)s)
GROUP BY provider, model
ORDER BY avg_hit_rate DESC NULLS LAST, provider, model
LIMIT %(limit)s

-- name: purge_provider_metrics
DELETE FROM provider_cache_metrics WHERE recorded_at <= %(cutoff)s AND tenant = %(tenant)s
