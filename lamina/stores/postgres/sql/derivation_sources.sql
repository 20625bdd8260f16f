-- What notes are made from, as it stands.
SELECT id, user_id, content, content_hash, event_at, importance, confidence
FROM notes
WHERE id = ANY(%(ids)s) AND tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND deleted_at IS NULL
