MATCH (n:Node)
WHERE n.id > $after AND n.tenant IS NOT NULL
RETURN n.id, n.label, n.tenant, n.workspace, n.namespace, n.tier, n.user, n.name, n.seen_at
ORDER BY n.id
LIMIT $limit
