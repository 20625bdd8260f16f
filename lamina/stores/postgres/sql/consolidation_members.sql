-- The consolidated notes of a scope that nobody rewrote, with all that each was made from.
SELECT m.id, m.user_id, array_agg(s.id ORDER BY s.id) AS members,
       array_agg(s.content_hash ORDER BY s.id) AS hashes, bool_or(s.expires_at IS NOT NULL) AS ends
FROM notes m
JOIN note_sources o ON o.note_id = m.id
JOIN notes s ON s.id = o.source_id
WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s AND m.deleted_at IS NULL
  AND m.source = %(source)s AND m.version = 1
GROUP BY m.id
ORDER BY m.id
