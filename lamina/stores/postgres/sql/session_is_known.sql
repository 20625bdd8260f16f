SELECT EXISTS (
    SELECT FROM sessions
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s
) AS is_known
