WITH versions AS (
    DELETE FROM profile_versions WHERE tenant = %(tenant)s AND user_id = %(user_id)s
)
DELETE FROM profiles WHERE tenant = %(tenant)s AND user_id = %(user_id)s
RETURNING workspace, namespace
