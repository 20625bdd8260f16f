-- Notes of a page, and those before it that may be near to one of them. What was made from others, or ends by itself,
-- says nothing that another one could stand for.
SELECT id, user_id, content, created_at, hits, importance, confidence, last_hit_at, tags, version
FROM notes n
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND deleted_at IS NULL AND expires_at IS NULL
  AND (%(created_at)s::timestamptz IS NULL OR (created_at, id) < (%(created_at)s, %(id)s::uuid))
  AND created_at >= %(since)s
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)
ORDER BY created_at DESC, id DESC
LIMIT %(limit)s
