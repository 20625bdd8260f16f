INSERT INTO provider_cache_metrics (id, tenant, workspace, agent, provider, model, input_tokens, cached_tokens,
                                    recorded_at)
SELECT id, %(tenant)s, workspace, agent, provider, model, input_tokens, cached_tokens, %(now)s
FROM unnest(%(ids)s::uuid[], %(workspaces)s::text[], %(agents)s::text[], %(providers)s::text[], %(models)s::text[],
            %(input_tokens)s::bigint[], %(cached_tokens)s::bigint[])
    AS new (id, workspace, agent, provider, model, input_tokens, cached_tokens)
