-- Who has raised the importance of a note by saying it again: each does so once.
ALTER TABLE notes ADD COLUMN raised_by text[] NOT NULL DEFAULT '{}';
