-- The sequence may have moved on by others' rows: then the answer is cached a moment later, never too early.
INSERT INTO epochs AS e (tenant, workspace, namespace, outbox_seq)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s, (SELECT last_value FROM outbox_seq_seq))
ON CONFLICT (tenant, workspace, namespace) DO UPDATE SET epoch = e.epoch + 1, outbox_seq = excluded.outbox_seq
RETURNING epoch
