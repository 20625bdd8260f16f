-- Quotas of tenants (subject '') and of keys (subject: the key's id); a quota without an amount is no limit.
CREATE TABLE quotas (
    tenant text NOT NULL,
    subject text NOT NULL,
    resource text NOT NULL,
    amount bigint CHECK (amount >= 0),
    PRIMARY KEY (tenant, subject, resource)
);

-- What replicas were granted of a limit in its window. Unlogged: after a crash the window begins anew.
CREATE UNLOGGED TABLE quota_windows (
    tenant text NOT NULL,
    subject text NOT NULL,
    resource text NOT NULL,
    started_at timestamptz NOT NULL,
    granted bigint NOT NULL,
    PRIMARY KEY (tenant, subject, resource)
);

-- What a tenant stores, as it was counted last. Unlogged: after a crash it is counted anew.
CREATE UNLOGGED TABLE tenant_usage (
    tenant text PRIMARY KEY,
    rows bigint NOT NULL,
    bytes bigint NOT NULL,
    documents bigint NOT NULL,
    namespaces bigint NOT NULL,
    counted_at timestamptz NOT NULL,
    took_s double precision NOT NULL
);
