-- A repeated delivery finds the message whose text was changed since.
CREATE INDEX messages_as_sent ON messages (tenant, workspace, namespace, session_id, sent_hash)
    WHERE sent_hash IS NOT NULL;
