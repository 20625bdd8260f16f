-- In the order of their ids, as those who count hits lock them.
WITH locked AS (
    SELECT id FROM responses
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND (id = ANY(%(ids)s) OR digest = %(digest)s)
    ORDER BY id
    FOR UPDATE
)
DELETE FROM responses r USING locked WHERE r.id = locked.id
RETURNING r.size_bytes
