-- A user's responses in one workspace, which is locked.
WITH locked AS (
    SELECT id FROM responses
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND user_id = %(user_id)s
    ORDER BY id
    FOR UPDATE
)
DELETE FROM responses r USING locked WHERE r.id = locked.id
RETURNING r.size_bytes
