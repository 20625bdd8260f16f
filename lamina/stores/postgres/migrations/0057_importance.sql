-- How much a message matters, as a note has it. What is there counts as any other.
ALTER TABLE messages ADD COLUMN importance double precision NOT NULL DEFAULT 0.5;
