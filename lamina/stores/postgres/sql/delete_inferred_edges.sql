-- Edges lose what nobody told; whether anything else founds them is looked at afterwards (prune_evidence).
DELETE FROM edge_evidence v USING edges e
WHERE v.edge_id = ANY(%(ids)s) AND v.source = %(source)s AND v.memory_id IS NULL AND v.user_id IS NULL
  AND e.id = v.edge_id
RETURNING e.id, e.from_id, e.to_id, e.tenant, e.workspace, e.namespace
