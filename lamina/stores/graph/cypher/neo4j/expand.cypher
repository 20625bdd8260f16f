// One step, in both directions. Of a node's links the strongest are kept while they are read, so
// that a hub costs one pass over its links and never a sort of them all. Conditions stand in the
// order of what they cost, those of links before those of nodes.
// By the index, and from the nodes on: planned over few nodes, it would read every one of a tenant.
UNWIND $ids AS id
MATCH (n:Node {id: id})
USING INDEX SEEK n:Node(id)
WHERE n.tenant = $tenant AND n.workspace = $workspace AND n.namespace = $namespace
  AND ($everyone OR n.user IS NULL OR n.user = $user)
  AND ($always OR n.label = 'Entity' OR n.seen_at <= $until)
CALL {
  WITH n
  MATCH (n)-[r:RELATES]-(m)
  WITH n, r, m
  WHERE ($always OR r.seen_at <= $until)
    AND ($every_kind OR r.kind IN $kinds)
    AND ($everyone OR r.shared OR $user IN r.users)
    AND ($everyone OR m.user IS NULL OR m.user = $user)
    AND m.tenant = $tenant AND m.workspace = $workspace AND m.namespace = $namespace
    AND ($always OR m.label = 'Entity' OR m.seen_at <= $until)
    AND m.id <> n.id
  RETURN r, m
  ORDER BY r.strength DESC, m.id, r.kind
  LIMIT $fan_out
}
RETURN n.id, m.id, m.label, m.tier, r.kind, r.strength, startNode(r).id = n.id, r.held
