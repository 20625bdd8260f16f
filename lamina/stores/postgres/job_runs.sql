-- name: insert_job_run
INSERT INTO job_runs (
    id, job, tenant, workspace, namespace, state, is_dry_run, is_forced, requested_by, moment, settings_digest)
VALUES (%(id)s, %(job)s, %(tenant)s, %(workspace)s, %(namespace)s, 'queued', %(is_dry_run)s, %(is_forced)s,
        %(requested_by)s, %(moment)s, %(settings_digest)s)

-- name: hold_orders
-- Until the transaction ends: two orders that count at once would both be the last one.
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, 6))

-- name: count_open_runs
SELECT count(*) AS runs FROM job_runs WHERE tenant = %(tenant)s AND state IN ('queued', 'running', 'undoing')

-- name: find_last_order
SELECT max(created_at) AS at FROM job_runs WHERE job = %(job)s AND requested_by = %(requested_by)s

-- name: find_unfinished_run
-- The unfinished run of the same job and kind on the same area by the same settings.
SELECT id FROM job_runs
WHERE job = %(job)s AND state IN ('queued', 'running') AND (is_dry_run, is_forced) = (%(is_dry_run)s, %(is_forced)s)
  AND (tenant, workspace, namespace) IS NOT DISTINCT FROM (%(tenant)s::text, %(workspace)s::text, %(namespace)s::text)
  AND settings_digest IS NOT DISTINCT FROM %(settings_digest)s::text
ORDER BY created_at
LIMIT 1

-- name: find_superseded_runs
-- Those by other settings than the one that works on the area now; those of the service wait for their turn.
SELECT id FROM job_runs
WHERE job = %(job)s AND state IN ('queued', 'running') AND (is_dry_run, is_forced) = (%(is_dry_run)s, %(is_forced)s)
  AND (tenant, workspace, namespace) IS NOT DISTINCT FROM (%(tenant)s::text, %(workspace)s::text, %(namespace)s::text)
  AND settings_digest <> %(settings_digest)s::text
ORDER BY created_at

-- name: find_runs
-- Runs with the sums over their partitions, the latest first.
SELECT r.id, r.job, r.tenant, r.workspace, r.namespace, r.state, r.is_dry_run, r.is_forced, r.requested_by, r.moment,
       r.settings_digest, r.plan, r.created_at, r.started_at, r.finished_at, r.undone_at, r.undone, r.error,
       coalesce(p.units, 0) AS units, coalesce(p.seen, 0) AS seen, coalesce(p.planned, 0) AS planned,
       coalesce(p.changed, 0) AS changed, coalesce(p.removed, 0) AS removed,
       coalesce(p.held, '[]') AS held, coalesce(p.problems, '[]') AS problems
FROM job_runs r
LEFT JOIN LATERAL (
    SELECT sum((counts ->> 'units')::bigint) AS units, sum((counts ->> 'seen')::bigint) AS seen,
           sum((counts ->> 'planned')::bigint) AS planned, sum((counts ->> 'changed')::bigint) AS changed,
           sum((counts ->> 'removed')::bigint) AS removed,
           jsonb_path_query_array(jsonb_agg(held ORDER BY partition), '$[*][*]') AS held,
           jsonb_path_query_array(jsonb_agg(problems ORDER BY partition), '$[*][*]') AS problems
    FROM job_partitions WHERE run_id = r.id
) p ON true
WHERE (%(id)s::uuid IS NULL OR r.id = %(id)s)
  AND (%(workspace)s::text IS NULL OR r.workspace = %(workspace)s)
  AND (%(namespace)s::text IS NULL OR r.namespace = %(namespace)s)
  AND (%(job)s::text IS NULL OR r.job = %(job)s)
  AND (%(tenant)s::text IS NULL OR r.tenant = %(tenant)s)
  AND (%(states)s::text[] IS NULL OR r.state = ANY(%(states)s))
  AND (%(after_time)s::timestamptz IS NULL OR (r.created_at, r.id) < (%(after_time)s, %(after_id)s::uuid))
ORDER BY CASE WHEN %(oldest_first)s THEN r.created_at END, r.created_at DESC, r.id DESC
LIMIT %(limit)s

-- name: begin_job_run
UPDATE job_runs
SET state = 'running', started_at = coalesce(started_at, clock_timestamp()),
    plan = CASE WHEN plan = '{}' THEN %(plan)s::jsonb ELSE plan END
           || jsonb_build_object('attempt', coalesce((plan ->> 'attempt')::integer, 0) + 1)
WHERE id = %(id)s AND state IN ('queued', 'running')
RETURNING plan

-- name: finish_job_run
UPDATE job_runs
SET state = %(state)s, error = %(error)s, undone = coalesce(%(undone)s::jsonb, undone),
    finished_at = coalesce(finished_at, clock_timestamp()),
    undone_at = CASE WHEN %(state)s = 'undone' THEN clock_timestamp() ELSE undone_at END
WHERE id = %(id)s AND (state <> 'undoing' OR %(state)s IN ('undone', 'failed'))
  AND (%(attempt)s::integer IS NULL
       OR (state IN ('queued', 'running') AND coalesce((plan ->> 'attempt')::integer, 0) = %(attempt)s))
RETURNING tenant, workspace, namespace, job, is_dry_run

-- name: reopen_job_run
UPDATE job_runs SET state = %(state)s WHERE id = %(id)s AND state = ANY(%(states)s) RETURNING id

-- name: begin_job_partition
INSERT INTO job_partitions AS p (run_id, partition) VALUES (%(run_id)s, %(partition)s)
ON CONFLICT (run_id, partition) DO UPDATE SET partition = p.partition
RETURNING partition, cursor, is_done

-- name: delete_old_runs
-- Old runs; the last one of each job stays, for the schedule learns from it which runs were missed.
DELETE FROM job_runs r
WHERE r.finished_at < %(before)s::timestamptz AND r.state <> 'undoing'
  AND EXISTS (SELECT FROM job_runs later WHERE later.job = r.job AND later.created_at > r.created_at)

-- name: advance_job_partition
-- First in the transaction of a page: another worker on the partition waits here, and then finds that it has moved
-- on.
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

-- name: count_job_changes
UPDATE job_partitions
SET counts = counts || jsonb_build_object(
        'changed', (counts ->> 'changed')::bigint + %(changed)s, 'removed', (counts ->> 'removed')::bigint + %(removed)s)
WHERE run_id = %(run_id)s AND partition = %(partition)s

-- name: find_run_area
SELECT tenant, workspace, namespace FROM job_runs WHERE id = %(id)s

-- name: list_job_tenants
-- Tenants of one partition that have written or cached anything, by id.
SELECT tenant, NULL AS workspace, NULL AS namespace
FROM (
    SELECT tenant FROM epochs UNION SELECT tenant FROM api_keys
    UNION SELECT tenant FROM embedding_cache UNION SELECT tenant FROM responses
) known
WHERE (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
  AND (%(after)s::text[] IS NULL OR tenant > (%(after)s::text[])[1])
  AND (hashtextextended(tenant, 0) & 2147483647) %% %(partitions)s = %(partition)s
ORDER BY tenant
LIMIT %(limit)s

-- name: list_job_namespaces
-- Namespaces of one partition, by id, after the given one. Every namespace that was written has a row in epochs.
SELECT tenant, workspace, namespace
FROM epochs
WHERE namespace <> ''
  AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
  AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
  AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
  AND (%(after)s::text[] IS NULL
       OR (tenant, workspace, namespace) > ((%(after)s::text[])[1], (%(after)s::text[])[2], (%(after)s::text[])[3]))
  AND (hashtextextended(tenant, hashtextextended(workspace, hashtextextended(namespace, 0))) & 2147483647)
      %% %(partitions)s = %(partition)s
ORDER BY tenant, workspace, namespace
LIMIT %(limit)s

-- name: count_job_tenants
SELECT count(*) AS units
FROM (
    SELECT tenant FROM epochs UNION SELECT tenant FROM api_keys
    UNION SELECT tenant FROM embedding_cache UNION SELECT tenant FROM responses
) known
WHERE %(tenant)s::text IS NULL OR tenant = %(tenant)s

-- name: count_job_namespaces
SELECT count(*) AS units FROM epochs
WHERE namespace <> ''
  AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
  AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
  AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
