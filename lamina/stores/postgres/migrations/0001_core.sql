-- The truth: scopes, keys, the first three tiers, and the outbox that feeds every projection.

CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS btree_gin;
CREATE EXTENSION IF NOT EXISTS unaccent;

-- English stems, accents folded. The words of other scripts pass through as they are.
CREATE TEXT SEARCH CONFIGURATION lamina (COPY = english);
ALTER TEXT SEARCH CONFIGURATION lamina
    ALTER MAPPING FOR hword, hword_part, word WITH unaccent, english_stem;

CREATE TABLE embedding_generations (
    generation smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text NOT NULL,
    dimension integer NOT NULL CHECK (dimension > 0),
    normalised boolean NOT NULL,
    is_active boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX embedding_generations_one_active ON embedding_generations (is_active) WHERE is_active;

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    role text NOT NULL CHECK (role IN ('reader', 'writer', 'admin')),
    label text NOT NULL,
    hint text NOT NULL,
    hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);

-- Bumped by every write in its own transaction; cache keys carry it.
CREATE TABLE epochs (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    epoch bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant, workspace, namespace)
);

-- Tier 1: session messages.
CREATE TABLE sessions (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    session_id text NOT NULL,
    next_position bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, workspace, namespace, session_id)
);

CREATE TABLE messages (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    session_id text NOT NULL,
    user_id text,
    agent_id text,
    swarm_id text,
    position bigint NOT NULL,
    role text NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
    name text,
    ref text,
    content text NOT NULL,
    content_hash bytea NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    occurred_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant, workspace, namespace, session_id, content_hash),
    UNIQUE (tenant, workspace, namespace, session_id, position)
);

CREATE TABLE message_chunks (
    message_id uuid NOT NULL REFERENCES messages ON DELETE CASCADE,
    chunk integer NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    session_id text NOT NULL,
    user_id text,
    occurred_at timestamptz NOT NULL,
    text_start integer NOT NULL,
    text_end integer NOT NULL,
    generation smallint NOT NULL REFERENCES embedding_generations,
    embedding vector(384) NOT NULL,
    PRIMARY KEY (message_id, generation, chunk)
);
CREATE INDEX message_chunks_scope ON message_chunks (tenant, workspace, namespace, session_id);
CREATE INDEX message_chunks_embedding ON message_chunks
    USING hnsw (embedding vector_cosine_ops) WITH (m = 8, ef_construction = 64);

-- Tier 2: notes.
CREATE TABLE notes (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    agent_id text,
    session_id text,
    swarm_id text,
    category text NOT NULL CHECK (category IN ('decision', 'outcome', 'strategy', 'note', 'interaction')),
    content text NOT NULL,
    content_hash bytea NOT NULL,
    importance double precision NOT NULL CHECK (importance BETWEEN 0 AND 1),
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    source text NOT NULL,
    version integer NOT NULL DEFAULT 1,
    hits bigint NOT NULL DEFAULT 1,
    event_at timestamptz NOT NULL,
    last_hit_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz
);
CREATE UNIQUE INDEX notes_one_of_each ON notes (tenant, workspace, namespace, user_id, content_hash)
    NULLS NOT DISTINCT WHERE deleted_at IS NULL;
CREATE INDEX notes_by_event ON notes (tenant, workspace, namespace, event_at DESC, id DESC) WHERE deleted_at IS NULL;

-- What a note was before each change; the current state is in notes.
CREATE TABLE note_versions (
    note_id uuid NOT NULL REFERENCES notes ON DELETE CASCADE,
    version integer NOT NULL,
    content text NOT NULL,
    category text NOT NULL,
    importance double precision NOT NULL,
    confidence double precision NOT NULL,
    tags text[] NOT NULL,
    metadata jsonb NOT NULL,
    written_at timestamptz NOT NULL,
    PRIMARY KEY (note_id, version)
);

CREATE TABLE note_chunks (
    note_id uuid NOT NULL REFERENCES notes ON DELETE CASCADE,
    chunk integer NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    text_start integer NOT NULL,
    text_end integer NOT NULL,
    tsv tsvector NOT NULL,
    generation smallint NOT NULL REFERENCES embedding_generations,
    embedding vector(384) NOT NULL,
    PRIMARY KEY (note_id, generation, chunk)
);
CREATE INDEX note_chunks_words ON note_chunks USING gin (tenant, workspace, namespace, tsv);

-- Tier 3: profiles.
CREATE TABLE profiles (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text NOT NULL,
    document jsonb NOT NULL,
    version integer NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, workspace, namespace, user_id)
);

CREATE TABLE profile_versions (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text NOT NULL,
    version integer NOT NULL,
    patch jsonb NOT NULL,
    document jsonb NOT NULL,
    written_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, workspace, namespace, user_id, version)
);

-- One row for each memory whose projection is out of date. It names the memory, not the change:
-- whoever applies it reads the memory's present state, so that any order and any repetition is right.
CREATE TABLE outbox (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    projection text NOT NULL,
    memory_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX outbox_by_projection ON outbox (projection, seq);

-- The answer that a write gave under its Idempotency-Key.
CREATE TABLE idempotency_keys (
    tenant text NOT NULL,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    response jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, key)
);
