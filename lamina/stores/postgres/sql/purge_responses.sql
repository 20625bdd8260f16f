-- All responses of a workspace, or of one agent there.
WITH locked AS (
    SELECT id FROM responses
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND (%(agent_id)s::text IS NULL OR agent = %(agent_id)s)
    ORDER BY id
    FOR UPDATE
)
DELETE FROM responses r USING locked WHERE r.id = locked.id
RETURNING r.size_bytes
