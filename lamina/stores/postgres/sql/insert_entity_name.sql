INSERT INTO entity_names (tenant, workspace, namespace, key, entity_id)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s, %(key)s, %(entity_id)s)
ON CONFLICT DO NOTHING
