-- Messages of a namespace that lack vectors of a generation, in the order of their ids. Those that a summary stands for
-- have theirs in a table of their own.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
SELECT m.id, m.content_hash AS guard, m.role, m.name, m.content
FROM messages m
WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
  AND (%(after)s::uuid IS NULL OR m.id > %(after)s)
  AND CASE WHEN m.compacted_at IS NULL
      THEN NOT EXISTS (SELECT FROM message_chunks c WHERE c.message_id = m.id AND c.generation = %(generation)s OFFSET 0)
      ELSE NOT EXISTS (SELECT FROM compacted_chunks c WHERE c.message_id = m.id AND c.generation = %(generation)s OFFSET 0) END
ORDER BY m.id
LIMIT %(limit)s
