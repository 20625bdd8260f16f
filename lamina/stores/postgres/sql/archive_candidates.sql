-- Cold notes that were found few times, and not for long. What another note was made from that is there, or may come
-- back, and what was made of others stays with them; what ends by itself stays where it ends.
SELECT n.id, n.version, n.hits, n.last_hit_at,
       octet_length(n.content)
       + coalesce((SELECT sum(octet_length(v.content)) FROM note_versions v WHERE v.note_id = n.id), 0) AS size_bytes
FROM notes n
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND n.temperature = 'cold' AND n.expires_at IS NULL
  AND n.hits <= %(most_hits)s AND n.last_hit_at <= %(moment)s::timestamptz - %(idle)s::interval
  AND NOT EXISTS (SELECT FROM note_sources s JOIN notes m ON m.id = s.note_id
                  WHERE s.source_id = n.id AND (m.deleted_at IS NULL OR m.merged_into IS NOT NULL))
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)
  AND (%(after)s::uuid IS NULL OR n.id > %(after)s)
ORDER BY n.id
LIMIT %(limit)s
