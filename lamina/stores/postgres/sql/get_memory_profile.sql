SELECT tiers, max_context_chunks, min_relevance, ttl_days, prompt_suffix, updated_at FROM memory_profiles
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent_id = %(agent_id)s
