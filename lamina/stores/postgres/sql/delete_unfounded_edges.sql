-- The edges are locked (lock_edges), or one that found new evidence meanwhile would go.
DELETE FROM edges e
WHERE e.id = ANY(%(ids)s) AND NOT EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id)
