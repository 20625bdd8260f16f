-- A note that nobody asks for goes cold: it stays in this table and leaves the warm indexes.
-- No index holds hits or last_hit_at, and pages keep some room, so that counting a hit touches no index;
-- the sweep, four times a day, reads the table instead.
ALTER TABLE notes SET (fillfactor = 90);
ALTER TABLE notes ADD COLUMN temperature text NOT NULL DEFAULT 'warm' CHECK (temperature IN ('warm', 'cold'));
ALTER TABLE notes ADD COLUMN temperature_changed_at timestamptz NOT NULL DEFAULT now();

-- A cold note's chunks have no words; the partial indexes hold warm ones alone.
ALTER TABLE note_chunks ALTER COLUMN tsv DROP NOT NULL;
DROP INDEX note_chunks_words;
CREATE INDEX note_chunks_words ON note_chunks USING gin (tenant, workspace, namespace, tsv) WHERE tsv IS NOT NULL;
CREATE INDEX note_chunks_embedding ON note_chunks
    USING hnsw (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 64) WHERE tsv IS NOT NULL;
