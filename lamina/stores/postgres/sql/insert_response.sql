INSERT INTO responses (id, tenant, workspace, namespace, agent, user_id, circumstances, digest, query, response,
                       generation, embedding, agent_epoch, workspace_epoch, workspace_writes, size_bytes,
                       created_at, expires_at, last_used_at)
VALUES (%(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(agent)s, %(user_id)s, %(circumstances)s, %(digest)s,
        %(query)s, %(response)s, %(generation)s, %(embedding)s, %(agent_epoch)s, %(workspace_epoch)s,
        %(workspace_writes)s, %(size_bytes)s, %(now)s, %(expires_at)s, %(now)s)
