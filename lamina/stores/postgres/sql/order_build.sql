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
