-- Users, agents and sessions are listed from what they wrote, by indexes; documents and procedures in their order.
-- One migration a table: a turn that holds its session waits for the messages, and nothing may wait for both.
CREATE INDEX messages_by_user ON messages (tenant, workspace, namespace, user_id, session_id);
CREATE INDEX messages_by_agent ON messages (tenant, workspace, namespace, agent_id, id) WHERE agent_id IS NOT NULL;
