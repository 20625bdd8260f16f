WITH page AS (
    SELECT p.id, p.document_id, d.workspace, d.namespace
    FROM documents d JOIN passages p ON p.document_id = d.id
    WHERE d.tenant = %(tenant)s AND d.user_id = %(user_id)s
    ORDER BY p.id
    LIMIT %(limit)s
    FOR UPDATE OF p
), gone AS (
    DELETE FROM passages p USING page WHERE p.id = page.id
    RETURNING p.id, page.workspace, page.namespace
)
SELECT id, workspace, namespace FROM gone
