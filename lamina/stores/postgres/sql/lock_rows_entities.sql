-- As for notes; in the order in which writers put entities.
SELECT id FROM entities WHERE id = ANY(%(ids)s::uuid[]) ORDER BY key COLLATE "C", id FOR UPDATE
