-- What is linked that way, and whether an inference is among what says so.
SELECT e.id, e.from_id, e.to_id,
       EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id AND v.source = %(source)s AND v.memory_id IS NULL
               AND v.user_id IS NULL) AS is_inferred
FROM edges e
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s AND e.type = %(type)s
ORDER BY e.id
