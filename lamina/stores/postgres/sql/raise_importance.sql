UPDATE notes n
SET importance = greatest(n.importance, raised.importance), updated_at = %(now)s
FROM (
    SELECT id, importance FROM unnest(%(ids)s::uuid[], %(importances)s::float8[]) AS given (id, importance)
) raised
WHERE n.id = raised.id AND n.deleted_at IS NULL
RETURNING n.id
