-- The run of the same job, on the same area and of the same kind, that has not come to its end.
SELECT id FROM job_runs
WHERE job = %(job)s AND state IN ('queued', 'running') AND (is_dry_run, is_forced) = (%(is_dry_run)s, %(is_forced)s)
  AND (tenant, workspace, namespace) IS NOT DISTINCT FROM (%(tenant)s::text, %(workspace)s::text, %(namespace)s::text)
ORDER BY created_at
LIMIT 1
