DELETE FROM documents WHERE id = %(id)s AND tenant = %(tenant)s
