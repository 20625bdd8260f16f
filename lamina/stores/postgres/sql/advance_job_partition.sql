-- First in the transaction of a page: whoever else works on the partition waits here, and then finds it further on.
UPDATE job_partitions
SET cursor = %(cursor)s,
    counts = jsonb_build_object(
        'units', coalesce((counts ->> 'units')::bigint, 0) + %(units)s,
        'seen', coalesce((counts ->> 'seen')::bigint, 0) + %(seen)s,
        'planned', coalesce((counts ->> 'planned')::bigint, 0) + %(planned)s,
        'changed', coalesce((counts ->> 'changed')::bigint, 0),
        'removed', coalesce((counts ->> 'removed')::bigint, 0)),
    held = CASE WHEN jsonb_array_length(held) < %(most_problems)s THEN held || %(held)s::jsonb ELSE held END,
    problems = CASE WHEN jsonb_array_length(problems) < %(most_problems)s THEN problems || %(problems)s::jsonb
               ELSE problems END,
    is_done = %(is_done)s, updated_at = clock_timestamp()
WHERE run_id = %(run_id)s AND partition = %(partition)s AND NOT is_done
  AND cursor IS NOT DISTINCT FROM %(expected)s::jsonb
  AND EXISTS (SELECT FROM job_runs WHERE id = %(run_id)s AND state = 'running' FOR SHARE)
RETURNING partition
