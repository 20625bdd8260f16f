-- What nobody sees any more, but what would still be in the way of a note of the same text.
SELECT id FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND user_id IS NOT DISTINCT FROM %(user_id)s
  AND content_hash = ANY(%(hashes)s) AND deleted_at IS NULL AND expires_at <= statement_timestamp()
ORDER BY id
FOR UPDATE
