-- name: measure_sizes
-- Estimated rows of the tables, and the size of the database, from Postgres's statistics: nothing is counted.
SELECT c.relname AS relation,
       CASE WHEN s.n_live_tup > 0 THEN s.n_live_tup ELSE greatest(c.reltuples, 0) END::float8 AS rows,
       pg_database_size(current_database()) AS database_bytes
FROM pg_class c
JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%(relations)s)

-- name: count_runs
-- Runs by job and state, and the end of the last real run on everything.
SELECT job, state, count(*) AS runs,
       max(finished_at) FILTER (WHERE state = 'done' AND NOT is_dry_run AND tenant IS NULL) AS done_at
FROM job_runs
GROUP BY job, state

-- name: read_last_audit
-- Memories compared by the last audit of everything, and those in which a projection differed.
SELECT coalesce(sum((p.counts ->> 'seen')::bigint), 0)::bigint AS seen,
       coalesce(sum((p.counts ->> 'planned')::bigint), 0)::bigint AS drift
FROM (
    SELECT id FROM job_runs
    WHERE job = 'audit' AND state = 'done' AND tenant IS NULL
    ORDER BY created_at DESC LIMIT 1
) r
LEFT JOIN job_partitions p ON p.run_id = r.id
GROUP BY r.id

-- name: count_generations
-- The active generation of vectors, and the number of those being built.
SELECT max(generation) FILTER (WHERE state = 'active') AS active,
       count(*) FILTER (WHERE state = 'building') AS building
FROM embedding_generations
