INSERT INTO archive_folders (tenant, workspace, namespace)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s)
ON CONFLICT DO NOTHING
