-- What an undo cannot bring back stays archived, and is no longer the run's.
UPDATE archived_notes SET run_id = NULL WHERE id = ANY(%(ids)s)
