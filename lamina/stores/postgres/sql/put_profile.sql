UPDATE profiles SET document = %(document)s, version = %(version)s, updated_at = %(now)s
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND user_id = %(user_id)s
