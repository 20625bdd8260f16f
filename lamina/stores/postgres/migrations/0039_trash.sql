-- What was deleted by a call and can be brought back. Notes and procedures stay in their tables, hidden; of messages and
-- documents the rows lie here.
CREATE TABLE trash (
    tenant text NOT NULL,
    id uuid NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    agent_id text,
    kind text NOT NULL,
    content_hash bytea,
    rows json,
    deleted_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX trash_of_scope ON trash (tenant, workspace, namespace, deleted_at DESC);
CREATE INDEX trash_of_user ON trash (tenant, user_id) WHERE user_id IS NOT NULL;
