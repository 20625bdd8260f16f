// What a node stands for is a property: to give a label to a node that is there already takes FalkorDB
// a time that grows with the graph.
UNWIND $nodes AS node
MERGE (n:Node {id: node.id})
SET n.label = node.label, n.tenant = node.tenant, n.workspace = node.workspace, n.namespace = node.namespace,
    n.tier = node.tier, n.user = node.user, n.name = node.name, n.seen_at = node.seen_at
