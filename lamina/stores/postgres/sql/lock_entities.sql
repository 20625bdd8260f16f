-- Before entities are deleted: the statement after this one sees what was committed while it waited. In the order in
-- which writers put entities, so that the two cannot deadlock.
SELECT id FROM entities WHERE id = ANY(%(ids)s) ORDER BY key COLLATE "C", id FOR UPDATE
