-- Warm notes that have been idle for the shortest lifespan there is, and what has expired.
SELECT id, temperature, hits, last_hit_at, expires_at
FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND ((temperature = 'warm' AND last_hit_at <= %(moment)s::timestamptz - interval '7 days') OR expires_at <= %(moment)s)
  AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s
