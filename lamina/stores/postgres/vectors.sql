-- name: find_outdated_vectors
-- Rows of a namespace that still have vectors of some generations, in the order of their ids.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
SELECT r.id FROM {rows} r
WHERE r.tenant = %(tenant)s AND r.workspace = %(workspace)s AND r.namespace = %(namespace)s AND {is_live}
  AND (%(after)s::uuid IS NULL OR r.id > %(after)s)
  AND EXISTS (SELECT FROM {vectors} v WHERE v.{key} = r.id AND v.generation = ANY(%(generations)s) OFFSET 0)
ORDER BY r.id
LIMIT %(limit)s

-- name: delete_outdated_vectors
-- The vectors that these rows have of generations that nobody reads any more.
DELETE FROM {vectors} v USING embedding_generations g
WHERE g.generation = ANY(%(generations)s) AND g.state = 'retired'
  AND v.generation = g.generation AND v.{key} = ANY(%(ids)s) AND v.tenant = %(tenant)s
RETURNING v.{key} AS id

-- name: delete_building_vectors
-- All vectors that an area has of a generation that is still being built.
DELETE FROM {vectors} v USING embedding_generations g
WHERE g.generation = %(generation)s AND g.state = 'building' AND v.generation = g.generation
  AND (%(tenant)s::text IS NULL OR v.tenant = %(tenant)s)
  AND (%(workspace)s::text IS NULL OR v.workspace = %(workspace)s)
  AND (%(namespace)s::text IS NULL OR v.namespace = %(namespace)s)
RETURNING v.{key} AS id
