INSERT INTO memory_profiles (tenant, workspace, agent_id, tiers, max_context_chunks, min_relevance, ttl_days,
                             prompt_suffix, updated_at)
VALUES (%(tenant)s, %(workspace)s, %(agent_id)s, %(tiers)s, %(max_context_chunks)s, %(min_relevance)s, %(ttl_days)s,
        %(prompt_suffix)s, %(now)s)
ON CONFLICT (tenant, workspace, agent_id) DO UPDATE SET
    tiers = excluded.tiers, max_context_chunks = excluded.max_context_chunks, min_relevance = excluded.min_relevance,
    ttl_days = excluded.ttl_days, prompt_suffix = excluded.prompt_suffix, updated_at = excluded.updated_at
