-- Notes whose weight may not be what the whole days say that they have been idle.
SELECT id, last_hit_at, weight
FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND CASE WHEN last_hit_at <= %(moment)s::timestamptz - interval '8 days' THEN weight > 0 ELSE weight < 1 END
  AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s
