-- Those of these notes that still say what they said, and do not end by themselves if that is asked for; they are there
-- until the transaction ends.
SELECT n.id
FROM unnest(%(ids)s::uuid[], %(hashes)s::bytea[]) AS d (id, content_hash)
JOIN notes n ON n.id = d.id
WHERE n.tenant = %(tenant)s AND n.deleted_at IS NULL AND n.content_hash = d.content_hash
  AND (n.expires_at IS NULL OR NOT %(lasting)s)
ORDER BY n.id
FOR SHARE OF n
