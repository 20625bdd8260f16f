-- Maintenance: runs of jobs, how far they are, and what they changed.

-- What a run is about stands in tenant, workspace and namespace; NULL means all of them. Its decisions count from
-- `moment`, whenever they are made: a run that is resumed decides as it would have.
CREATE TABLE job_runs (
    id uuid PRIMARY KEY,
    job text NOT NULL,
    tenant text,
    workspace text,
    namespace text,
    state text NOT NULL
        CHECK (state IN ('queued', 'running', 'done', 'stopped', 'failed', 'undoing', 'undone')),
    is_dry_run boolean NOT NULL,
    is_forced boolean NOT NULL,
    plan jsonb NOT NULL DEFAULT '{}',
    requested_by text NOT NULL,
    moment timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,
    finished_at timestamptz,
    undone_at timestamptz,
    undone jsonb,
    error text
);
CREATE INDEX job_runs_by_job ON job_runs (job, created_at DESC);
CREATE INDEX job_runs_open ON job_runs (created_at) WHERE state IN ('queued', 'running', 'undoing');

-- Scopes by the hash of their ids. The cursor is written in the transaction of the page that it stands behind, so
-- that each page is applied once, whoever dies.
CREATE TABLE job_partitions (
    run_id uuid NOT NULL REFERENCES job_runs ON DELETE CASCADE,
    partition integer NOT NULL,
    cursor jsonb,
    counts jsonb NOT NULL DEFAULT '{}',
    held jsonb NOT NULL DEFAULT '[]',
    problems jsonb NOT NULL DEFAULT '[]',
    is_done boolean NOT NULL DEFAULT false,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (run_id, partition)
);

-- The columns of each row that a run changed, as they were and as it left them.
CREATE TABLE job_changes (
    run_id uuid NOT NULL REFERENCES job_runs ON DELETE CASCADE,
    relation text NOT NULL,
    row_id uuid NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL,
    PRIMARY KEY (run_id, relation, row_id)
);

-- Notes fade from contexts with their idle time, may end at a time, and may have been merged into another one, which
-- says the same: that one stands for them, and they go for good when it goes.
ALTER TABLE notes ADD COLUMN weight double precision NOT NULL DEFAULT 1 CHECK (weight BETWEEN 0 AND 1);
ALTER TABLE notes ADD COLUMN expires_at timestamptz;
ALTER TABLE notes ADD COLUMN merged_into uuid;
CREATE INDEX notes_by_id ON notes (tenant, workspace, namespace, id) WHERE deleted_at IS NULL;
CREATE INDEX notes_by_age ON notes (tenant, workspace, namespace, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX api_keys_of_tenant ON api_keys (tenant);
CREATE INDEX notes_expiring ON notes (expires_at) WHERE expires_at IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX notes_merged ON notes (merged_into) WHERE merged_into IS NOT NULL;

-- What time has left of what an entity's or an edge's evidence says: confidence and strength count times this.
ALTER TABLE entities ADD COLUMN standing double precision NOT NULL DEFAULT 1 CHECK (standing BETWEEN 0 AND 1);
ALTER TABLE edges ADD COLUMN standing double precision NOT NULL DEFAULT 1 CHECK (standing BETWEEN 0 AND 1);
CREATE INDEX entities_by_id ON entities (tenant, workspace, namespace, id);
CREATE INDEX edges_by_id ON edges (tenant, workspace, namespace, id);

-- A summary takes the place of messages: they leave the session and every index, and come back by an undo. Its
-- position is that of the last of them.
ALTER TABLE messages ADD COLUMN is_summary boolean NOT NULL DEFAULT false;
ALTER TABLE messages ADD COLUMN compacted_at timestamptz;
ALTER TABLE messages ADD COLUMN compacted_into uuid;
ALTER TABLE messages DROP CONSTRAINT messages_tenant_workspace_namespace_session_id_position_key;
CREATE UNIQUE INDEX messages_one_at_each_position ON messages (tenant, workspace, namespace, session_id, position)
    WHERE NOT is_summary;
CREATE INDEX messages_summaries ON messages (tenant, workspace, namespace, session_id, position) WHERE is_summary;

-- The vectors of messages that a summary stands for, outside the index of the others.
CREATE TABLE compacted_chunks (
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

-- Notes that are in a file of the archive, and nowhere else.
CREATE TABLE archived_notes (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    content_hash bytea NOT NULL,
    file text NOT NULL,
    run_id uuid,
    archived_at timestamptz NOT NULL
);
CREATE INDEX archived_notes_of_scope ON archived_notes (tenant, workspace, namespace, id);
CREATE INDEX archived_notes_by_file ON archived_notes (file);
CREATE INDEX archived_notes_by_run ON archived_notes (run_id) WHERE run_id IS NOT NULL;

-- Tells this database's files from those of others in the same archive.
CREATE TABLE archive_identity (id uuid PRIMARY KEY DEFAULT gen_random_uuid());
INSERT INTO archive_identity DEFAULT VALUES;

-- Scopes of which the archive has, or had, files: their folders are marked, and one without its mark is not there.
CREATE TABLE archive_folders (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    PRIMARY KEY (tenant, workspace, namespace)
);
