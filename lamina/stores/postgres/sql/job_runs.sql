-- Runs with what their partitions add up to, the latest first.
SELECT r.id, r.job, r.tenant, r.workspace, r.namespace, r.state, r.is_dry_run, r.is_forced, r.requested_by, r.moment,
       r.plan, r.created_at, r.started_at, r.finished_at, r.undone_at, r.undone, r.error,
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
  AND (%(job)s::text IS NULL OR r.job = %(job)s)
  AND (%(tenant)s::text IS NULL OR r.tenant = %(tenant)s)
  AND (%(states)s::text[] IS NULL OR r.state = ANY(%(states)s))
ORDER BY CASE WHEN %(oldest_first)s THEN r.created_at END, r.created_at DESC, r.id DESC
LIMIT %(limit)s
