-- What proves a cached answer fresh. The row of namespace '' (no namespace has that name) stands for the whole
-- workspace: its shares and its agents' profiles. outbox_seq: when the outbox has no row up to here, every
-- projection has taken over what the epoch's write changed.
ALTER TABLE epochs ADD COLUMN outbox_seq bigint NOT NULL DEFAULT 0;
