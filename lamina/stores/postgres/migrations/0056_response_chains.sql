-- The session of a response or conversation that lies at a model's endpoint: the next request names it alone, and may come
-- to another router. It follows its session, and ends with it.
CREATE TABLE response_chains (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    chain text NOT NULL,
    session_id text NOT NULL,
    user_id text,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, workspace, namespace, chain),
    FOREIGN KEY (tenant, workspace, namespace, session_id) REFERENCES sessions
        ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX response_chains_by_session ON response_chains (tenant, workspace, namespace, session_id);
CREATE INDEX response_chains_by_age ON response_chains (tenant, created_at);
CREATE INDEX response_chains_by_user ON response_chains (tenant, user_id) WHERE user_id IS NOT NULL;
