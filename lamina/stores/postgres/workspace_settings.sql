-- name: get_workspace_settings
SELECT settings, updated_at FROM workspace_settings WHERE tenant = %(tenant)s AND workspace = %(workspace)s

-- name: put_workspace_settings
INSERT INTO workspace_settings (tenant, workspace, settings, updated_at)
VALUES (%(tenant)s, %(workspace)s, %(settings)s, %(now)s)
ON CONFLICT (tenant, workspace) DO UPDATE SET settings = excluded.settings, updated_at = excluded.updated_at
