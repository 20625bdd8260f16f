-- Some of what a run changed in one relation, in the order of ids: taken for the undo, in its transaction.
WITH taken AS (
    SELECT run_id, relation, row_id FROM job_changes
    WHERE run_id = %(run_id)s AND relation = %(relation)s
    ORDER BY row_id
    LIMIT %(limit)s
    FOR UPDATE
)
DELETE FROM job_changes j USING taken t
WHERE (j.run_id, j.relation, j.row_id) = (t.run_id, t.relation, t.row_id)
RETURNING j.row_id AS id, j.before, j.after
