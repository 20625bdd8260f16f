-- What an agent's profile changes is seen in every namespace; in the order of the key, so that two of these do not deadlock.
UPDATE epochs e SET epoch = e.epoch + 1
FROM (
    SELECT tenant, workspace, namespace FROM epochs
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s
    ORDER BY namespace
    FOR UPDATE
) locked
WHERE (e.tenant, e.workspace, e.namespace) = (locked.tenant, locked.workspace, locked.namespace)
