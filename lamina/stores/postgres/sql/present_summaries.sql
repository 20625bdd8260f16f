-- The summaries of a scope that exist: what was made from others, with the period that it tells. Callers may write into
-- the metadata, so nothing is cast.
SELECT n.id, n.user_id, n.metadata -> 'summary' ->> 'level' AS level, n.metadata -> 'summary' ->> 'start' AS start,
       n.content_hash
FROM notes n
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND n.source = %(source)s AND EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)
