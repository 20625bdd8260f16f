CREATE INDEX FOR (n:Node) ON (n.id)
