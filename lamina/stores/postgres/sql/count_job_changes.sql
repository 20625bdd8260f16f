UPDATE job_partitions
SET counts = counts || jsonb_build_object(
        'changed', (counts ->> 'changed')::bigint + %(changed)s, 'removed', (counts ->> 'removed')::bigint + %(removed)s)
WHERE run_id = %(run_id)s AND partition = %(partition)s
