-- Who said a note that was drawn from messages, as these name them; null: nobody, or somebody without a name.
ALTER TABLE notes ADD COLUMN speakers text[];
