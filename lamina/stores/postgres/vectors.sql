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

-- name: find_refusals
SELECT id FROM refused_texts WHERE generation = %(generation)s AND id = ANY(%(ids)s)

-- name: lock_refused
-- In the order of their ids, as everybody who locks several rows.
SELECT r.id FROM {rows} r WHERE r.id = ANY(%(ids)s) AND r.tenant = %(tenant)s ORDER BY r.id FOR SHARE

-- name: delete_stand_ins
DELETE FROM {vectors} v
WHERE v.{key} = ANY(%(ids)s) AND v.generation = %(generation)s AND v.tenant = %(tenant)s

-- name: forget_refusals
DELETE FROM refused_texts WHERE generation = %(generation)s AND id = ANY(%(ids)s)

-- name: keep_refusals
INSERT INTO refused_texts (generation, id) SELECT %(generation)s, unnest(%(ids)s::uuid[]) ON CONFLICT DO NOTHING

-- name: end_refusals
-- Of rows that are gone.
DELETE FROM refused_texts f WHERE {gone}
