INSERT INTO epochs AS e (tenant, workspace, namespace)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s)
ON CONFLICT (tenant, workspace, namespace) DO UPDATE SET epoch = e.epoch + 1
RETURNING epoch
