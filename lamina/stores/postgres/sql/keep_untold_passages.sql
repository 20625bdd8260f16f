-- Those of these passages that are still there, and stay until the transaction ends.
SELECT p.id, 6 AS tier, p.content, p.user_id, d.source, d.event_at AS seen_at
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE p.id = ANY(%(ids)s)
  AND p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
ORDER BY p.id
FOR KEY SHARE OF p
