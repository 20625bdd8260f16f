MATCH (n:Node)
WHERE n.tenant = $tenant AND n.id > $after
RETURN n.id, n.label, n.tenant, n.workspace, n.namespace, n.tier, n.user, n.name, n.seen_at
ORDER BY n.tenant, n.id
LIMIT $limit
