-- Addresses that events are sent to, each up to its position in the order of events.
CREATE TABLE webhooks (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    workspace text,
    url text NOT NULL,
    kinds text[] NOT NULL DEFAULT '{}',
    secrets jsonb NOT NULL,
    position bigint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    next_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    claimed_by uuid,
    claimed_until timestamptz,
    delivered bigint NOT NULL DEFAULT 0,
    delivered_at timestamptz,
    last_error text,
    failed_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX webhooks_of_tenant ON webhooks (tenant, created_at);
CREATE INDEX webhooks_due ON webhooks (next_at);

-- Events that were given up, until they are sent again or end with their event.
CREATE TABLE webhook_dead_letters (
    webhook_id uuid NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    attempts integer NOT NULL,
    error text NOT NULL,
    died_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    is_due boolean NOT NULL DEFAULT false,
    PRIMARY KEY (webhook_id, seq)
);
