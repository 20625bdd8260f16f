-- Layer 3 of the caches: responses of models, found again by the meaning of what was asked.

-- When somebody last learnt something in a namespace: a response that was begun before it is not stored, although
-- its agent has no row below yet that could tell.
ALTER TABLE epochs ADD COLUMN taught_at timestamptz;

-- Agents that put responses, and in the row of agent '' (no agent has that name) their workspace. A response is
-- current while the epochs it was put under are; a write raises them in its own transaction, and touches nothing where
-- there is no row. They begin at the time of day in microseconds, so that a row that is made again goes on upwards.
-- Locked in the order of their names, after the rows in epochs.
CREATE TABLE response_agents (
    tenant text NOT NULL,
    workspace text NOT NULL,
    agent text NOT NULL,
    epoch bigint NOT NULL,
    writes bigint NOT NULL,
    prompt_version text,
    lookups bigint NOT NULL DEFAULT 0,
    hits bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    put_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, workspace, agent)
);

-- Of what one agent may be answered with under given circumstances every vector is compared: the budget of the
-- workspace bounds how many these are, and an index of vectors would have to be walked past everybody else's.
-- Vectors stay in the row, where comparing them takes no second read; responses move out of it. Long questions have
-- none: they are found again by their words alone.
CREATE TABLE responses (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    agent text NOT NULL,
    user_id text,
    circumstances bytea NOT NULL,
    digest bytea NOT NULL,
    query text NOT NULL,
    response json NOT NULL,
    generation smallint NOT NULL REFERENCES embedding_generations,
    embedding vector(384),
    agent_epoch bigint NOT NULL,
    workspace_epoch bigint NOT NULL,
    workspace_writes bigint NOT NULL,
    size_bytes bigint NOT NULL,
    hits bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    lease_until timestamptz
);
ALTER TABLE responses ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE UNIQUE INDEX responses_one_of_each ON responses (digest);
CREATE INDEX responses_of_agent ON responses (tenant, workspace, agent, circumstances);
