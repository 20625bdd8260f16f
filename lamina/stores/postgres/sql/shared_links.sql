-- Edges of a scope that everybody may see for as long as it is said: at least one shared piece of evidence, which no note
-- told that is gone or ends by itself. What a merged note told, its survivor still tells.
SELECT e.from_id, e.to_id
FROM edges e
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND e.type <> %(type)s
  AND EXISTS (
      SELECT FROM edge_evidence v LEFT JOIN notes n ON n.id = v.memory_id
      WHERE v.edge_id = e.id AND v.user_id IS NULL AND n.expires_at IS NULL
        AND (n.deleted_at IS NULL OR n.merged_into IS NOT NULL))
ORDER BY e.id
