-- The session of an archived note, as it is called now; '' for none. Of those that were archived before, the file alone
-- says it: NULL.
ALTER TABLE archived_notes ADD COLUMN session_id text;
CREATE INDEX archived_notes_by_session ON archived_notes (tenant, workspace, namespace, session_id);
