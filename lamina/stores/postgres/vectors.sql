-- name: find_outdated_vectors
-- All rows of a namespace with vectors of these generations, by id. OFFSET 0: as in find_unembedded_messages.
SELECT r.id FROM {rows} r
WHERE r.tenant = %(tenant)s AND r.workspace = %(workspace)s AND r.namespace = %(namespace)s AND {is_live}
  AND (%(after)s::uuid IS NULL OR r.id > %(after)s)
  AND EXISTS (SELECT FROM {vectors} v WHERE v.{key} = r.id AND v.generation = ANY(%(generations)s) OFFSET 0)
ORDER BY r.id
LIMIT %(limit)s

-- name: delete_outdated_vectors
-- Vectors of generations that nobody reads any more.
DELETE FROM {vectors} v USING embedding_generations g
WHERE g.generation = ANY(%(generations)s) AND g.state = 'retired'
  AND v.generation = g.generation AND v.{key} = ANY(%(ids)s) AND v.tenant = %(tenant)s
RETURNING v.{key} AS id

-- name: delete_building_vectors
-- All vectors of an area of a generation that is being built.
DELETE FROM {vectors} v USING embedding_generations g
WHERE g.generation = %(generation)s AND g.state = 'building' AND v.generation = g.generation
  AND (%(tenant)s::text IS NULL OR v.tenant = %(tenant)s)
  AND (%(workspace)s::text IS NULL OR v.workspace = %(workspace)s)
  AND (%(namespace)s::text IS NULL OR v.namespace = %(namespace)s)
RETURNING v.{key} AS id
