-- Entities of a namespace that lack a vector of a generation, in the order of their ids.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
SELECT e.id, sha256_of(e.name) AS guard, e.name
FROM entities e
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND (%(after)s::uuid IS NULL OR e.id > %(after)s)
  AND e.generation IS DISTINCT FROM %(generation)s::smallint
  AND NOT EXISTS (SELECT FROM entity_embeddings o
                  WHERE o.entity_id = e.id AND o.generation = %(generation)s AND o.text_hash = sha256_of(e.name)
                  OFFSET 0)
ORDER BY e.id
LIMIT %(limit)s
