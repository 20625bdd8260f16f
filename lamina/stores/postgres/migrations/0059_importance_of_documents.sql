-- How much a document matters: a migration of its own, for turns write messages, then documents.
ALTER TABLE documents ADD COLUMN importance double precision NOT NULL DEFAULT 0.5;
