-- Layer 7 of the caches, where it outlives its shards: embeddings of questions, by tenant, generation and text.

-- The text itself is not kept. Vectors are read whole and never compared here, so they are the bytes of their float32
-- numbers: exact, of any length, and nothing to parse. They are random to a compressor; longer ones move out of the row.
CREATE TABLE embedding_cache (
    tenant text NOT NULL,
    generation smallint NOT NULL REFERENCES embedding_generations,
    text_hash bytea NOT NULL,
    embedding bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, generation, text_hash)
);
ALTER TABLE embedding_cache ALTER COLUMN embedding SET STORAGE EXTERNAL;
CREATE INDEX embedding_cache_last_used ON embedding_cache (last_used_at);

-- What providers of models answered from their own prompt caches, one row an inference call. A call without input has
-- no rate.
CREATE TABLE provider_cache_metrics (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    workspace text NOT NULL,
    agent text,
    provider text NOT NULL,
    model text NOT NULL,
    input_tokens bigint NOT NULL CHECK (input_tokens >= 0),
    cached_tokens bigint NOT NULL CHECK (cached_tokens BETWEEN 0 AND input_tokens),
    hit_rate double precision
        GENERATED ALWAYS AS (cached_tokens::double precision / nullif(input_tokens, 0)) STORED,
    recorded_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX provider_cache_metrics_of_tenant ON provider_cache_metrics (tenant, recorded_at);
-- Rows come in the order of time: a few pages of index tell which part of the table is old.
CREATE INDEX provider_cache_metrics_by_time ON provider_cache_metrics USING brin (recorded_at);
