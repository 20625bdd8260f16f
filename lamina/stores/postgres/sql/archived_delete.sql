DELETE FROM archived_notes WHERE id = ANY(%(ids)s)
