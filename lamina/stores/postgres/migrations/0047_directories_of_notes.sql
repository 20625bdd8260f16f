-- Agents are listed from what they wrote.
CREATE INDEX notes_by_agent ON notes (tenant, workspace, namespace, agent_id, id)
    WHERE agent_id IS NOT NULL AND deleted_at IS NULL;
