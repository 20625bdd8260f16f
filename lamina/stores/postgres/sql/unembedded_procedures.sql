-- Procedures of a namespace that lack a vector of a generation, in the order of their ids.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
SELECT p.id, sha256_of(p.trigger) AS guard, p.trigger
FROM procedures p
WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s AND p.deleted_at IS NULL
  AND (%(after)s::uuid IS NULL OR p.id > %(after)s)
  AND p.generation IS DISTINCT FROM %(generation)s::smallint
  AND NOT EXISTS (SELECT FROM procedure_embeddings o
                  WHERE o.procedure_id = p.id AND o.generation = %(generation)s AND o.text_hash = sha256_of(p.trigger)
                  OFFSET 0)
ORDER BY p.id
LIMIT %(limit)s
