UNWIND $ids AS id
MATCH (n:Node {id: id})-[r:RELATES]->(m:Node)
RETURN n.id, m.id, r.kind, r.strength, r.users, r.shared, r.seen_at, r.held
ORDER BY n.id, m.id, r.kind
