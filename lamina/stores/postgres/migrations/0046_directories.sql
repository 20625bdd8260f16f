-- Users, agents and sessions are listed from what they wrote, by indexes; documents and procedures in their order.
CREATE INDEX messages_by_user ON messages (tenant, workspace, namespace, user_id, session_id);
CREATE INDEX messages_by_agent ON messages (tenant, workspace, namespace, agent_id, id) WHERE agent_id IS NOT NULL;
CREATE INDEX notes_by_agent ON notes (tenant, workspace, namespace, agent_id, id)
    WHERE agent_id IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX documents_by_agent ON documents (tenant, workspace, namespace, agent_id, id) WHERE agent_id IS NOT NULL;
CREATE INDEX procedures_by_agent ON procedures (tenant, workspace, namespace, agent_id, id)
    WHERE agent_id IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX sessions_by_age ON sessions (tenant, workspace, namespace, created_at, session_id);
CREATE INDEX documents_by_event ON documents (tenant, workspace, namespace, event_at, id);
CREATE INDEX procedures_by_age ON procedures (tenant, workspace, namespace, created_at, id) WHERE deleted_at IS NULL;
-- Last, for its lock stops reads until the commit.
ALTER TABLE epochs ADD COLUMN written_at timestamptz;
