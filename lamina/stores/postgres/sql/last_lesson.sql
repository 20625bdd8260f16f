SELECT max(taught_at) AS taught_at FROM epochs WHERE tenant = %(tenant)s AND workspace = %(workspace)s
