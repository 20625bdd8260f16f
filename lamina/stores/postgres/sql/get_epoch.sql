SELECT epoch FROM epochs
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
