-- The notes that were written in a session are deleted with it.
CREATE INDEX notes_by_session ON notes (tenant, workspace, namespace, session_id, id)
    WHERE session_id IS NOT NULL AND deleted_at IS NULL;
