-- Those of these notes that were made at some time, deleted ones included.
SELECT id FROM notes WHERE id = ANY(%(ids)s)
