-- For good: versions, chunks and sources go with the rows, and what a run could bring back.
WITH gone AS (
    DELETE FROM notes WHERE id = ANY(%(ids)s) AND tenant = %(tenant)s RETURNING id
)
DELETE FROM job_changes j USING gone WHERE j.row_id = gone.id
