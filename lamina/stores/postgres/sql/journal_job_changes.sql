INSERT INTO job_changes (run_id, relation, row_id, before, after)
SELECT %(run_id)s, %(relation)s, c.id, c.before, c.after
FROM unnest(%(ids)s::uuid[], %(befores)s::jsonb[], %(afters)s::jsonb[]) AS c (id, before, after)
ON CONFLICT (run_id, relation, row_id) DO NOTHING
