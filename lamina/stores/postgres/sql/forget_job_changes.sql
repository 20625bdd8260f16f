-- What can no longer be undone.
WITH old AS (
    SELECT id FROM job_runs WHERE finished_at < %(before)s::timestamptz AND state <> 'undoing'
)
DELETE FROM job_changes j USING old WHERE j.run_id = old.id
