-- Before rows are compared with what was decided upon: a statement that waits for a row compares what it saw before.
SELECT id FROM edges WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id FOR UPDATE
