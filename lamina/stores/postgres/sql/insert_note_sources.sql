INSERT INTO note_sources (note_id, source_id)
SELECT %(note_id)s, unnest(%(source_ids)s::uuid[])
ON CONFLICT DO NOTHING
