-- The names that a namespace had before renamings, as pairs with that of its workspace: ids of notes that jobs made there
-- follow from the name of then.
ALTER TABLE epochs ADD COLUMN former jsonb;
