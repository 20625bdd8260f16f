-- The entities are locked (lock_entities), or one that was mentioned meanwhile would go.
DELETE FROM entities n
WHERE n.id = ANY(%(ids)s) AND NOT n.is_asserted
  AND NOT EXISTS (SELECT FROM memory_links l WHERE l.to_id = n.id)
  AND NOT EXISTS (SELECT FROM edges e WHERE e.from_id = n.id OR e.to_id = n.id)
RETURNING n.id
