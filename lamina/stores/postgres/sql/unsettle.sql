-- A projection is filled anew: what was computed from it may be wrong, and what will be is, until it is full.
UPDATE epochs e SET epoch = e.epoch + 1, outbox_seq = greatest(e.outbox_seq, (SELECT last_value FROM outbox_seq_seq))
FROM (
    SELECT tenant, workspace, namespace FROM epochs
    WHERE %(tenant)s::text IS NULL OR tenant = %(tenant)s
    ORDER BY tenant, workspace, namespace
    FOR UPDATE
) locked
WHERE (e.tenant, e.workspace, e.namespace) = (locked.tenant, locked.workspace, locked.namespace)
