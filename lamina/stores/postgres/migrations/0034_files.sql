-- Files of a workspace are documents with a path: their texts stay as they were sent, and their passages know their lines.
ALTER TABLE documents
    ADD COLUMN path text,
    ADD COLUMN text_hash bytea,
    ADD COLUMN is_always boolean NOT NULL DEFAULT false,
    ADD COLUMN mirror text;

ALTER TABLE passages
    ADD COLUMN line_start integer,
    ADD COLUMN line_end integer;

CREATE TABLE file_versions (
    document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
    version integer NOT NULL,
    content text NOT NULL,
    text_hash bytea NOT NULL,
    replaced_at timestamptz NOT NULL,
    PRIMARY KEY (document_id, version)
);
