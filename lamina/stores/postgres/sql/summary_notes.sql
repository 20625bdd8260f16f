-- Notes of whole days that were not made from others and do not end by themselves.
SELECT id, user_id, event_at, content_hash
FROM notes n
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND expires_at IS NULL AND event_at < %(until)s AND (%(since)s::timestamptz IS NULL OR event_at >= %(since)s)
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)
