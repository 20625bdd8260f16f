-- Agents are listed from what they wrote, and procedures in their order.
CREATE INDEX procedures_by_agent ON procedures (tenant, workspace, namespace, agent_id, id)
    WHERE agent_id IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX procedures_by_age ON procedures (tenant, workspace, namespace, created_at, id) WHERE deleted_at IS NULL;
