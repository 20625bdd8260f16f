SELECT id, standing, last_seen_at
FROM edges
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND (standing < 1 OR last_seen_at <= %(moment)s::timestamptz - interval '1 day')
  AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s
