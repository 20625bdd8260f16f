-- Edges of a scope that everybody may see: at least one shared piece of evidence.
SELECT e.from_id, e.to_id
FROM edges e
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND e.type <> %(type)s
  AND EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id AND v.user_id IS NULL)
ORDER BY e.id
