-- The edges that rest on these memories, and the entities they start from.
DELETE FROM edge_evidence v USING edges e
WHERE v.memory_id = ANY(%(ids)s) AND e.id = v.edge_id
RETURNING e.id AS edge_id, e.from_id, e.to_id
