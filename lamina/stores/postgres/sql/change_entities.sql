-- Put entities into another state, where they still are in the one that was decided upon; see change_notes.
WITH wanted AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::jsonb[], %(afters)s::jsonb[]) AS w (id, guard, after)
), held AS (
    SELECT n.id, w.after,
           jsonb_build_object('confidence', n.confidence, 'standing', n.standing, 'last_seen_at', n.last_seen_at) AS state
    FROM wanted w
    JOIN entities n ON n.id = w.id
    CROSS JOIN LATERAL jsonb_populate_record(n, w.guard) AS r
    WHERE n.id = ANY(%(ids)s::uuid[]) AND (%(tenant)s::text IS NULL OR n.tenant = %(tenant)s)
      AND (r.confidence, r.standing, r.last_seen_at) IS NOT DISTINCT FROM (n.confidence, n.standing, n.last_seen_at)
), changed AS (
    UPDATE entities n
    SET (confidence, standing) = (SELECT r.confidence, r.standing FROM jsonb_populate_record(n, l.after) AS r)
    FROM held l
    WHERE n.id = l.id
    RETURNING n.id, n.tenant, n.workspace, n.namespace
), kept AS (
    INSERT INTO job_changes AS j (run_id, relation, row_id, before, after)
    SELECT %(run_id)s, 'entities', l.id,
           (SELECT jsonb_object_agg(key, l.state -> key) FROM jsonb_object_keys(l.after) AS key), l.after
    FROM held l
    WHERE %(run_id)s::uuid IS NOT NULL
    ON CONFLICT (run_id, relation, row_id) DO UPDATE
    SET before = excluded.before || j.before, after = j.after || excluded.after
)
SELECT * FROM changed
