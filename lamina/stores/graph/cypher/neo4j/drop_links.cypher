// By the index, however few nodes there were when the server planned it: it keeps a plan for long.
UNWIND $ids AS id
MATCH (n:Node {id: id})
USING INDEX SEEK n:Node(id)
MATCH (n)-[r:RELATES]->()
WITH r
WHERE r.round <> $round
DELETE r
