-- Nothing that was kept for a tenant, or for one of its workspaces, is proven fresh any more.
WITH whole AS (
    INSERT INTO epochs AS e (tenant, workspace, namespace, taught_at)
    SELECT %(tenant)s, %(workspace)s, '', clock_timestamp() WHERE %(workspace)s::text IS NOT NULL
    ON CONFLICT (tenant, workspace, namespace) DO UPDATE SET epoch = e.epoch + 1, taught_at = clock_timestamp()
), locked AS (
    SELECT tenant, workspace, namespace FROM epochs
    WHERE tenant = %(tenant)s
      AND (%(workspace)s::text IS NULL OR (workspace = %(workspace)s AND namespace <> ''))
    ORDER BY workspace, namespace
    FOR UPDATE
)
UPDATE epochs e SET epoch = e.epoch + 1, taught_at = clock_timestamp()
FROM locked
WHERE (e.tenant, e.workspace, e.namespace) = (locked.tenant, locked.workspace, locked.namespace)
