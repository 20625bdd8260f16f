-- Agents are listed from what they wrote, and documents in their order.
CREATE INDEX documents_by_agent ON documents (tenant, workspace, namespace, agent_id, id) WHERE agent_id IS NOT NULL;
CREATE INDEX documents_by_event ON documents (tenant, workspace, namespace, event_at, id);
