UNWIND $ids AS id
MATCH (n:Node {id: id})-[r:RELATES]->(:Node)
WHERE r.round <> $round
DELETE r
