-- What left the searches for these notes, each text once.
SELECT DISTINCT ON (user_id, content_hash) id, merged_into
FROM notes
WHERE merged_into = ANY(%(ids)s) AND tenant = %(tenant)s AND deleted_at IS NOT NULL
ORDER BY user_id, content_hash, id
