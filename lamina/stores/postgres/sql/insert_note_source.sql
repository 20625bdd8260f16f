INSERT INTO note_sources (note_id, source_id) VALUES (%(note_id)s, %(source_id)s)
ON CONFLICT DO NOTHING
