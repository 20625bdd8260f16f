-- What holds in a workspace in place of the installation's settings.
CREATE TABLE workspace_settings (
    tenant text NOT NULL,
    workspace text NOT NULL,
    settings jsonb NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, workspace)
);
