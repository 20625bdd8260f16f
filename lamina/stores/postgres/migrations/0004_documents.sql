-- Documents: uploaded as a whole, replaced and deleted as a whole, found by their passages.
CREATE TABLE documents (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    agent_id text,
    key text NOT NULL,
    title text NOT NULL,
    media_type text NOT NULL,
    content text NOT NULL,
    content_hash bytea NOT NULL,
    characters integer NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    source text NOT NULL,
    version integer NOT NULL DEFAULT 1,
    event_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX documents_one_of_each ON documents (tenant, workspace, namespace, user_id, key)
    NULLS NOT DISTINCT;

CREATE TABLE passages (
    id uuid PRIMARY KEY,
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    position integer NOT NULL,
    content text NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    heading text,
    page integer,
    text_start integer NOT NULL,
    text_end integer NOT NULL,
    UNIQUE (document_id, position)
);

-- Stretches of what is embedded of a passage: the document's title, its heading, then the passage.
CREATE TABLE passage_chunks (
    passage_id uuid NOT NULL REFERENCES passages ON DELETE CASCADE,
    chunk integer NOT NULL,
    text_start integer NOT NULL,
    text_end integer NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    tsv tsvector NOT NULL DEFAULT '',
    generation smallint NOT NULL REFERENCES embedding_generations,
    embedding vector(384) NOT NULL,
    PRIMARY KEY (passage_id, generation, chunk)
);
CREATE INDEX passage_chunks_embedding ON passage_chunks
    USING hnsw (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 64);
-- For names that become known after a passage was stored.
CREATE INDEX passage_chunks_words ON passage_chunks USING gin (tenant, workspace, namespace, tsv);
