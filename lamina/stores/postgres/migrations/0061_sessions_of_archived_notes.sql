-- The session of an archived note, as it is called now; '' for none. Of those that were archived before, the file alone
-- says it: NULL.
ALTER TABLE archived_notes ADD COLUMN session_id text;
