-- What the last audit of everything found: memories looked at, and those in which a projection differed.
SELECT coalesce(sum((p.counts ->> 'seen')::bigint), 0)::bigint AS seen,
       coalesce(sum((p.counts ->> 'planned')::bigint), 0)::bigint AS drift
FROM (
    SELECT id FROM job_runs
    WHERE job = 'audit' AND state = 'done' AND tenant IS NULL
    ORDER BY created_at DESC LIMIT 1
) r
LEFT JOIN job_partitions p ON p.run_id = r.id
GROUP BY r.id
