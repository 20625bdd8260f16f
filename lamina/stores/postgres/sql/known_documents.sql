SELECT d.id, d.key, d.content_hash, d.version,
       (SELECT count(*) FROM passages p WHERE p.document_id = d.id) AS passages
FROM documents d
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND d.user_id IS NOT DISTINCT FROM %(user_id)s AND d.key = ANY(%(keys)s)
