INSERT INTO projection_stores AS known (projection, build, building_until, ordered_at)
VALUES (%(projection)s, 1, 0, now())
ON CONFLICT (projection) DO UPDATE SET build = known.build + 1, building_until = 0, ordered_at = now()
WHERE known.building_until IS NULL
RETURNING build
