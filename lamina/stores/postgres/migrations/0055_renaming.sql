-- The renaming that a place takes part in, from or to, while writes there wait; and the signed receipt of a deletion.
ALTER TABLE epochs ADD COLUMN renaming uuid;
ALTER TABLE operations ADD COLUMN receipt json;
