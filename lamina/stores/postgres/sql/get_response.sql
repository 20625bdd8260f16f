SELECT response FROM responses WHERE id = %(id)s AND tenant = %(tenant)s AND workspace = %(workspace)s
