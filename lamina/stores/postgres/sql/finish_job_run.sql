UPDATE job_runs
SET state = %(state)s, error = %(error)s, undone = coalesce(%(undone)s::jsonb, undone),
    finished_at = coalesce(finished_at, clock_timestamp()),
    undone_at = CASE WHEN %(state)s = 'undone' THEN clock_timestamp() ELSE undone_at END
WHERE id = %(id)s AND (state <> 'undoing' OR %(state)s IN ('undone', 'failed'))
