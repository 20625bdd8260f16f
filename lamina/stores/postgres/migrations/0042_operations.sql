-- Operations over many memories, whose progress outlives processes. The conditions of one that is complete are not kept.
CREATE TABLE operations (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    kind text NOT NULL,
    workspace text,
    namespace text,
    user_id text,
    agent_id text,
    session_id text,
    request json NOT NULL,
    state text NOT NULL DEFAULT 'running',
    cursor uuid,
    counts jsonb NOT NULL DEFAULT '{}',
    waits_for text,
    requested_at timestamptz NOT NULL,
    completed_at timestamptz
);
CREATE INDEX operations_open ON operations (requested_at, id) WHERE state = 'running';
CREATE INDEX operations_of_tenant ON operations (tenant, id DESC);
CREATE INDEX operations_of_user ON operations (tenant, user_id) WHERE user_id IS NOT NULL;
