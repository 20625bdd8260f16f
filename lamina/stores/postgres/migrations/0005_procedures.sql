-- Tier 5: what to do when; outcomes raise or lower how strongly it is recommended.
CREATE TABLE procedures (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    agent_id text,
    trigger text NOT NULL,
    trigger_key text NOT NULL,
    action text NOT NULL,
    content_hash bytea NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    source text NOT NULL,
    strength double precision NOT NULL DEFAULT 0.5 CHECK (strength BETWEEN 0 AND 1),
    successes bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    tsv tsvector NOT NULL,
    generation smallint NOT NULL REFERENCES embedding_generations,
    embedding vector(384) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    deleted_at timestamptz
);
CREATE UNIQUE INDEX procedures_one_of_each ON procedures (tenant, workspace, namespace, content_hash)
    WHERE deleted_at IS NULL;
CREATE INDEX procedures_prefix ON procedures (tenant, workspace, namespace, trigger_key text_pattern_ops)
    WHERE deleted_at IS NULL;
CREATE INDEX procedures_words ON procedures USING gin (tenant, workspace, namespace, tsv) WHERE deleted_at IS NULL;
CREATE INDEX procedures_embedding ON procedures
    USING hnsw (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 64);

CREATE TABLE procedure_outcomes (
    id uuid PRIMARY KEY,
    procedure_id uuid NOT NULL REFERENCES procedures ON DELETE CASCADE,
    run text,
    succeeded boolean NOT NULL,
    comment text,
    agent_id text,
    reported_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (procedure_id, run)
);
