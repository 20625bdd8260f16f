-- Seen again, an edge starts to decay anew. How strong and how sure it then is, weigh_edges tells from its evidence.
INSERT INTO edges AS e (
    id, tenant, workspace, namespace, from_id, to_id, type, strength, confidence, first_seen_at, last_seen_at
) VALUES (
    %(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(from_id)s, %(to_id)s, %(type)s, %(strength)s, %(confidence)s,
    %(seen_at)s, %(seen_at)s
)
ON CONFLICT (from_id, to_id, type) DO UPDATE
SET first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(e.last_seen_at, excluded.last_seen_at),
    standing = 1
RETURNING id, id = %(id)s AS is_new
