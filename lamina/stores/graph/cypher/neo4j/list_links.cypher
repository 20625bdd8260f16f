// By the index, however few nodes there were when the server planned it: it keeps a plan for long.
UNWIND $ids AS id
MATCH (n:Node {id: id})
USING INDEX SEEK n:Node(id)
MATCH (n)-[r:RELATES]->(m)
RETURN n.id, m.id, r.kind, r.strength, r.users, r.shared, r.seen_at, r.held
ORDER BY n.id, m.id, r.kind
