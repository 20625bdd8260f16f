SELECT key, entity_id FROM entity_names
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND sha256_of(key) = ANY(ARRAY(SELECT sha256_of(wanted) FROM unnest(%(keys)s::text[]) AS wanted))
ORDER BY key, entity_id
