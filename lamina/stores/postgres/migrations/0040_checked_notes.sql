-- Takes a lock beside which notes are read and written, whatever their number.
ALTER TABLE notes VALIDATE CONSTRAINT notes_category_check;
