-- The work of agents: one row for each turn with tool calls, usage or an outcome. The tool calls themselves are messages.
CREATE TABLE agent_turns (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    session_id text NOT NULL,
    user_id text,
    agent_id text,
    witness text,
    last_position bigint NOT NULL,
    digest bytea NOT NULL,
    tools text[] NOT NULL,
    failed_calls integer NOT NULL,
    provider text,
    model text,
    input_tokens bigint,
    cached_tokens bigint,
    output_tokens bigint,
    cost double precision,
    latency_ms double precision,
    succeeded boolean,
    score double precision,
    comment text,
    recorded_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX agent_turns_one_of_each
    ON agent_turns (tenant, workspace, namespace, session_id, user_id, last_position, digest) NULLS NOT DISTINCT;
CREATE INDEX agent_turns_by_time ON agent_turns (tenant, workspace, namespace, recorded_at, id);
CREATE INDEX agent_turns_by_user ON agent_turns (tenant, user_id) WHERE user_id IS NOT NULL;
