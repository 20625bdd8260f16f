SELECT document, version, updated_at FROM profiles
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND user_id = %(user_id)s
