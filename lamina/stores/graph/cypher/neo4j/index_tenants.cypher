// Gives the pages of an audit in their order.
CREATE INDEX lamina_node_of_tenant IF NOT EXISTS FOR (n:Node) ON (n.tenant, n.id)
