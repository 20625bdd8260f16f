-- The entities that each of these memories names, the rarest first.
SELECT l.from_id, l.to_id
FROM memory_links l
WHERE l.from_id = ANY(%(ids)s) AND l.kind IN ('about', 'mentions')
  AND l.tenant = %(tenant)s AND l.workspace = %(workspace)s AND l.namespace = %(namespace)s
ORDER BY l.from_id, (SELECT count(*) FROM (SELECT FROM memory_links m WHERE m.to_id = l.to_id LIMIT 1000) counted), l.to_id
