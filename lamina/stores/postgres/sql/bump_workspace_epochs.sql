-- What an agent's profile or a share changes is seen in every namespace, those without a row included; in the order
-- of the key, so that two of these do not deadlock.
WITH whole AS (
    INSERT INTO epochs AS e (tenant, workspace, namespace, taught_at)
    VALUES (%(tenant)s, %(workspace)s, '', clock_timestamp())
    ON CONFLICT (tenant, workspace, namespace) DO UPDATE SET epoch = e.epoch + 1, taught_at = clock_timestamp()
), locked AS (
    SELECT tenant, workspace, namespace FROM epochs
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace <> ''
    ORDER BY namespace
    FOR UPDATE
)
UPDATE epochs e SET epoch = e.epoch + 1
FROM locked
WHERE (e.tenant, e.workspace, e.namespace) = (locked.tenant, locked.workspace, locked.namespace)
