-- Notes whose file is written: their chunks and versions go with them.
DELETE FROM notes WHERE id = ANY(%(ids)s)
