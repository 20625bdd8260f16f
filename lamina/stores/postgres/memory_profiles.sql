-- name: get_memory_profile
SELECT tiers, max_context_chunks, min_relevance, ttl_days, prompt_suffix, shows_profile, updated_at,
       coalesce(verified_at = updated_at, false) AS is_verified
FROM memory_profiles
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent_id = %(agent_id)s

-- name: put_memory_profile
INSERT INTO memory_profiles (tenant, workspace, agent_id, tiers, max_context_chunks, min_relevance, ttl_days,
                             prompt_suffix, shows_profile, updated_at, verified_at)
VALUES (%(tenant)s, %(workspace)s, %(agent_id)s, %(tiers)s, %(max_context_chunks)s, %(min_relevance)s, %(ttl_days)s,
        %(prompt_suffix)s, %(shows_profile)s, %(now)s, CASE WHEN %(is_verified)s THEN %(now)s::timestamptz END)
ON CONFLICT (tenant, workspace, agent_id) DO UPDATE SET
    tiers = excluded.tiers, max_context_chunks = excluded.max_context_chunks, min_relevance = excluded.min_relevance,
    ttl_days = excluded.ttl_days, prompt_suffix = excluded.prompt_suffix,
    shows_profile = excluded.shows_profile, updated_at = excluded.updated_at,
    verified_at = excluded.verified_at

-- name: delete_memory_profile
DELETE FROM memory_profiles
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent_id = %(agent_id)s
