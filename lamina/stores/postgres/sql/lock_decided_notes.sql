-- Those of these notes that still are as they were decided upon; they stay so until the transaction ends.
SELECT n.id
FROM unnest(%(ids)s::uuid[], %(versions)s::integer[], %(hits)s::bigint[], %(last)s::timestamptz[])
     AS d (id, version, hits, last_hit_at)
JOIN notes n ON n.id = d.id
WHERE n.tenant = %(tenant)s AND n.deleted_at IS NULL
  AND (n.version, n.hits, n.last_hit_at) = (d.version, d.hits, d.last_hit_at)
ORDER BY n.id
FOR UPDATE OF n
