WITH page AS (
    SELECT id FROM messages
    WHERE tenant = %(tenant)s AND user_id = %(user_id)s
    ORDER BY id
    LIMIT %(limit)s
    FOR UPDATE
), gone AS (
    DELETE FROM messages m USING page WHERE m.id = page.id
    RETURNING m.id, m.workspace, m.namespace
), kept AS (
    DELETE FROM job_changes j USING gone WHERE j.row_id = gone.id
)
SELECT id, workspace, namespace FROM gone
