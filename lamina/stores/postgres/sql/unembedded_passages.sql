-- Passages of a namespace that lack vectors of a generation, in the order of their ids.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
SELECT p.id, d.content_hash AS guard, d.title, p.heading, p.content
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
  AND (%(after)s::uuid IS NULL OR p.id > %(after)s)
  AND NOT EXISTS (SELECT FROM passage_chunks c WHERE c.passage_id = p.id AND c.generation = %(generation)s OFFSET 0)
ORDER BY p.id
LIMIT %(limit)s
