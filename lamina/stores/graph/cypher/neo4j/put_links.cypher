// A link is marked with the round that put it: what a node's changes no longer name keeps an older mark.
UNWIND $links AS link
MATCH (n:Node {id: link.source})
USING INDEX SEEK n:Node(id)
MERGE (m:Node {id: link.target})
MERGE (n)-[r:RELATES {kind: link.kind}]->(m)
SET r.strength = link.strength, r.users = link.users, r.shared = link.shared, r.seen_at = link.seen_at,
    r.held = link.held, r.round = $round
