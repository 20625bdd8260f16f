UPDATE job_runs
SET state = CASE WHEN state = 'undoing' THEN state ELSE 'running' END, started_at = coalesce(started_at, clock_timestamp()),
    plan = CASE WHEN plan = '{}' THEN %(plan)s::jsonb ELSE plan END
WHERE id = %(id)s AND state IN ('queued', 'running', 'undoing')
RETURNING plan
