SELECT response::text AS response FROM responses
WHERE id = %(id)s AND tenant = %(tenant)s AND workspace = %(workspace)s
