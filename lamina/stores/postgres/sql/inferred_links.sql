SELECT from_id, to_id FROM edges
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND type = %(type)s
