UPDATE sessions SET next_position = next_position + %(count)s
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s
