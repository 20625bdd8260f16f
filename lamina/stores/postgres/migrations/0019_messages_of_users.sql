-- The same message of two users is two messages: each may read only the own one.
ALTER TABLE messages DROP CONSTRAINT messages_tenant_workspace_namespace_session_id_content_hash_key;
CREATE UNIQUE INDEX messages_one_of_each ON messages (tenant, workspace, namespace, session_id, content_hash, user_id)
    NULLS NOT DISTINCT;
