UPDATE job_runs
SET state = 'running', started_at = coalesce(started_at, clock_timestamp()),
    plan = CASE WHEN plan = '{}' THEN %(plan)s::jsonb ELSE plan END
WHERE id = %(id)s AND state IN ('queued', 'running')
RETURNING plan
