DELETE FROM memory_links WHERE from_id = ANY(%(ids)s) OR to_id = ANY(%(ids)s)
RETURNING from_id, to_id, kind
