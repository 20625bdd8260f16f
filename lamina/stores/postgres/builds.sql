-- name: find_requested_build
SELECT build FROM projection_stores
WHERE projection = %(projection)s AND building_until IS NOT NULL

-- name: find_full_build
SELECT build FROM projection_stores s
WHERE projection = %(projection)s AND building_until < %(unbounded)s
  AND NOT EXISTS (SELECT FROM outbox o WHERE o.projection = s.projection AND o.seq <= s.building_until)

-- name: finish_build
UPDATE projection_stores SET building_until = NULL
WHERE projection = %(projection)s AND build = %(build)s

-- name: find_outdated_words
SELECT projection FROM projection_stores
WHERE projection = ANY(%(projections)s) AND words_version < %(words_version)s
ORDER BY projection

-- name: mark_words
UPDATE projection_stores SET words_version = %(words_version)s WHERE projection = %(projection)s

-- name: list_builds
SELECT s.projection, s.build, count(o.seq) AS pending
FROM projection_stores s
LEFT JOIN outbox o ON o.projection = s.projection AND o.seq <= s.building_until
WHERE s.building_until IS NOT NULL
GROUP BY s.projection, s.build
ORDER BY s.projection

-- name: order_build
-- Numbers only rise, also where this table was restored from an older copy: stores remember the last build they saw.
-- An order that was cut off before it was bounded goes on as the same build.
INSERT INTO projection_stores AS known (projection, build, building_until, ordered_at)
VALUES (%(projection)s, extract(epoch FROM now())::int, %(unbounded)s, now())
ON CONFLICT (projection) DO UPDATE SET
    build = CASE
        WHEN known.building_until IS NULL THEN greatest(known.build + 1, excluded.build)
        ELSE known.build
    END,
    building_until = excluded.building_until,
    ordered_at = now()
WHERE known.building_until IS NULL OR known.building_until = excluded.building_until
RETURNING build

-- name: make_store
INSERT INTO projection_stores (projection, words_version) VALUES (%(projection)s, %(words_version)s)
ON CONFLICT DO NOTHING

-- name: lock_store
SELECT store, filled_at > clock_timestamp() - %(apart)s::interval AS is_filled_lately,
       coalesce(filled_at = '-infinity', false) AS is_given_up,
       (SELECT count(DISTINCT memory_id) FROM outbox WHERE projection = %(projection)s) AS pending
FROM projection_stores
WHERE projection = %(projection)s
FOR UPDATE

-- name: claim_store
UPDATE projection_stores SET store = %(store)s WHERE projection = %(projection)s

-- name: begin_filling
UPDATE projection_stores SET filled_at = clock_timestamp(), words_version = %(words_version)s, mark = 0
WHERE projection = %(projection)s

-- name: bound_build
UPDATE projection_stores SET building_until = (SELECT last_value FROM outbox_seq_seq)
WHERE projection = %(projection)s AND building_until IS NOT NULL

-- name: read_mark
SELECT mark FROM projection_stores WHERE projection = %(projection)s

-- name: raise_mark
UPDATE projection_stores SET mark = greatest(mark, %(mark)s) WHERE projection = %(projection)s

-- name: read_installation
SELECT id FROM archive_identity

-- name: find_served_store
SELECT store FROM projection_stores WHERE projection = %(projection)s

-- name: read_store_status
SELECT %(generation)s::smallint IS NULL OR EXISTS (
           SELECT FROM embedding_generations
           WHERE is_active AND generation = %(generation)s AND activations = %(activations)s
       ) AS is_active,
       NOT EXISTS (
           SELECT FROM projection_stores WHERE projection = %(projection)s AND store <> %(store)s
       ) AS is_here

-- name: list_tenants
SELECT DISTINCT tenant FROM epochs ORDER BY tenant
