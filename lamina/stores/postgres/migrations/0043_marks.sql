-- The number of the last flush of a projection, which its store keeps, too: a store that has another one was restored.
ALTER TABLE projection_stores ADD COLUMN mark bigint NOT NULL DEFAULT 0;
