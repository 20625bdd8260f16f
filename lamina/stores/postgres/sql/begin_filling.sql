-- Of several replicas that start together and find the same store empty, one has it filled.
INSERT INTO projection_stores AS known (projection, filled_at) VALUES (%(projection)s, clock_timestamp())
ON CONFLICT (projection) DO UPDATE SET filled_at = clock_timestamp()
WHERE known.filled_at IS NULL OR known.filled_at < clock_timestamp() - %(apart)s::interval
RETURNING true AS is_mine
