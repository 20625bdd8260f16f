-- Notes of a namespace, warm and cold, that lack vectors of a generation, in the order of their ids.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
SELECT n.id, n.content_hash AS guard, n.content
FROM notes n
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND (%(after)s::uuid IS NULL OR n.id > %(after)s)
  AND NOT EXISTS (SELECT FROM note_chunks c WHERE c.note_id = n.id AND c.generation = %(generation)s OFFSET 0)
ORDER BY n.id
LIMIT %(limit)s
