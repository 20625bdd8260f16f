SELECT key, entity_id FROM entity_names
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND key = ANY(%(keys)s)
ORDER BY key, entity_id
