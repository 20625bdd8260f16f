-- The message that an archived note was drawn from, if nobody changed the note; and when that message was corrected to
-- say something else.
ALTER TABLE archived_notes ADD COLUMN drawn_from text, ADD COLUMN corrected_at timestamptz;
