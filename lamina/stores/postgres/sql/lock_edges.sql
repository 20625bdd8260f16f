-- Before edges are weighed or deleted: the statement after this one sees what was committed while it waited.
SELECT id FROM edges WHERE id = ANY(%(ids)s) ORDER BY id FOR UPDATE
