-- What a note was made from: a summary must not outlive what it summarises.
CREATE TABLE note_sources (
    note_id uuid NOT NULL REFERENCES notes ON DELETE CASCADE,
    source_id uuid NOT NULL REFERENCES notes ON DELETE CASCADE,
    PRIMARY KEY (note_id, source_id)
);
CREATE INDEX note_sources_by_source ON note_sources (source_id);
