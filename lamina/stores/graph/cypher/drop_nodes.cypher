UNWIND $ids AS id
MATCH (n:Node {id: id})
DETACH DELETE n
