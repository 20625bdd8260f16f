INSERT INTO memory_links (
    from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
) VALUES (
    %(from_id)s, %(to_id)s, %(kind)s, %(tier)s, %(tenant)s, %(workspace)s, %(namespace)s, %(owner)s, %(source)s,
    %(strength)s, %(seen_at)s
)
ON CONFLICT DO NOTHING
