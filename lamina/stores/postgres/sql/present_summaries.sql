-- The summaries of a scope that exist.
SELECT id, user_id, metadata -> 'summary' ->> 'level' AS level,
       (metadata -> 'summary' ->> 'start')::timestamptz AS start, content_hash
FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND source = %(source)s
