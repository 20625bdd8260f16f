-- Edges that rest on nothing but an inference; others only lose it.
WITH gone AS (
    DELETE FROM edge_evidence WHERE edge_id = ANY(%(ids)s) AND source = %(source)s AND memory_id IS NULL
    RETURNING edge_id
)
DELETE FROM edges e USING gone
WHERE e.id = gone.edge_id
  AND NOT EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id
                  AND NOT (v.source = %(source)s AND v.memory_id IS NULL))
RETURNING e.id, e.from_id, e.tenant, e.workspace, e.namespace
