-- What stands in an index for texts that may together be longer than an index can hold.
CREATE FUNCTION sha256_of(texts text[]) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN sha256(convert_to(array_to_json(texts)::text, 'UTF8'));

-- What one workspace lets another one see, until it expires or is revoked.
CREATE TABLE shares (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    from_workspace text NOT NULL,
    from_namespace text NOT NULL,
    to_workspace text NOT NULL,
    segment text NOT NULL CHECK (segment IN ('notes', 'graph', 'procedures', 'documents')),
    tags text[] NOT NULL DEFAULT '{}',
    label text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX shares_into ON shares (tenant, to_workspace) WHERE revoked_at IS NULL;
CREATE UNIQUE INDEX shares_one_of_each
    ON shares (tenant, from_workspace, from_namespace, to_workspace, segment, sha256_of(tags))
    WHERE revoked_at IS NULL;

-- How an agent wants to remember.
CREATE TABLE memory_profiles (
    tenant text NOT NULL,
    workspace text NOT NULL,
    agent_id text NOT NULL,
    tiers text[] NOT NULL,
    max_context_chunks integer NOT NULL CHECK (max_context_chunks > 0),
    min_relevance double precision NOT NULL CHECK (min_relevance BETWEEN 0 AND 1),
    ttl_days double precision CHECK (ttl_days > 0),
    prompt_suffix text NOT NULL DEFAULT '',
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, workspace, agent_id)
);
