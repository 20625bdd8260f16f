-- What a user stated for himself alone, of which no memory is left.
DELETE FROM edge_evidence v USING edges e
WHERE e.id = v.edge_id AND e.tenant = %(tenant)s AND v.user_id = %(user_id)s
RETURNING e.id AS edge_id, e.from_id, e.to_id, e.workspace, e.namespace
