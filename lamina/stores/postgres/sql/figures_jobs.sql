-- Runs that are kept, by job and state, and when one on everything that was no dry run last was done.
SELECT job, state, count(*) AS runs,
       max(finished_at) FILTER (WHERE state = 'done' AND NOT is_dry_run AND tenant IS NULL) AS done_at
FROM job_runs
GROUP BY job, state
