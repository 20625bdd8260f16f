UPDATE shares SET revoked_at = coalesce(revoked_at, %(now)s)
WHERE id = %(id)s AND tenant = %(tenant)s
RETURNING to_workspace
