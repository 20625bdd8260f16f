-- The notes that are linked to these notes; each note is linked to a few others at most.
INSERT INTO outbox (projection, memory_id)
SELECT DISTINCT 'graph', from_id FROM memory_links WHERE to_id = ANY(%(ids)s::uuid[]) AND kind = 'similar'
