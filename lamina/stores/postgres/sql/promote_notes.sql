UPDATE notes
SET temperature = 'warm', temperature_changed_at = %(now)s, last_hit_at = greatest(last_hit_at, %(now)s), weight = 1
WHERE id = ANY(%(ids)s) AND temperature = 'cold' AND deleted_at IS NULL
RETURNING id, tenant, workspace, namespace
