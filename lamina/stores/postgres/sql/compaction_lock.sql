-- Those of these messages that still stand in their sessions and say what they said; they stay so until the transaction
-- ends. In the order in which they are changed.
SELECT m.id
FROM unnest(%(ids)s::uuid[], %(hashes)s::bytea[]) AS wanted (id, content_hash)
JOIN messages m ON m.id = wanted.id AND m.content_hash = wanted.content_hash
WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s AND m.compacted_at IS NULL
ORDER BY m.id
FOR UPDATE OF m
