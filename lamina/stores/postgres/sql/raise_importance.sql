-- Told again, a note counts as used now.
UPDATE notes n
SET importance = greatest(n.importance, raised.importance), updated_at = %(now)s,
    last_hit_at = greatest(n.last_hit_at, %(now)s), weight = 1
FROM (
    SELECT id, importance FROM unnest(%(ids)s::uuid[], %(importances)s::float8[]) AS given (id, importance)
) raised
WHERE n.id = raised.id AND n.deleted_at IS NULL
  AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
RETURNING n.id
