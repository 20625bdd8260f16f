-- Those of these entities that are still there, and stay until the transaction ends.
SELECT id FROM entities
WHERE id = ANY(%(ids)s)
  AND tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
ORDER BY key COLLATE "C", id
FOR KEY SHARE
