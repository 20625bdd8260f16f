-- Runs that nobody asks for any more; one a job stays, by which the schedule knows what it missed.
DELETE FROM job_runs r
WHERE r.finished_at < %(before)s::timestamptz AND r.state <> 'undoing'
  AND EXISTS (SELECT FROM job_runs later WHERE later.job = r.job AND later.created_at > r.created_at)
