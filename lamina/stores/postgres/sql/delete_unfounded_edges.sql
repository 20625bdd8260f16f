DELETE FROM edges e
WHERE e.id = ANY(%(ids)s) AND NOT EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id)
