-- Put notes into another state, where they still are in the one that was decided upon. What they were is kept for the
-- undo of the run, if there is one. They are locked (lock_rows_notes). A text that the scope has again meanwhile does not come back a second time.
-- The ids stand twice, for otherwise a page among a million notes is joined with all of them.
WITH wanted AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::jsonb[], %(afters)s::jsonb[]) AS w (id, guard, after)
), held AS (
    SELECT n.id, n.temperature AS was, n.deleted_at IS NULL AS was_live, w.after,
           jsonb_build_object(
               'temperature', n.temperature, 'temperature_changed_at', n.temperature_changed_at, 'weight', n.weight,
               'hits', n.hits, 'importance', n.importance, 'confidence', n.confidence, 'tags', n.tags,
               'last_hit_at', n.last_hit_at, 'deleted_at', n.deleted_at, 'merged_into', n.merged_into) AS state
    FROM wanted w
    JOIN notes n ON n.id = w.id
    CROSS JOIN LATERAL jsonb_populate_record(n, w.guard) AS r
    WHERE n.id = ANY(%(ids)s::uuid[]) AND (%(tenant)s::text IS NULL OR n.tenant = %(tenant)s)
      AND (r.temperature, r.temperature_changed_at, r.weight, r.hits, r.importance, r.confidence, r.tags,
           r.last_hit_at, r.deleted_at, r.merged_into)
          IS NOT DISTINCT FROM
          (n.temperature, n.temperature_changed_at, n.weight, n.hits, n.importance, n.confidence, n.tags,
           n.last_hit_at, n.deleted_at, n.merged_into)
      AND (w.after -> 'deleted_at' IS DISTINCT FROM 'null' OR n.deleted_at IS NULL OR NOT EXISTS (
          SELECT FROM notes o
          WHERE (o.tenant, o.workspace, o.namespace, o.content_hash)
                = (n.tenant, n.workspace, n.namespace, n.content_hash)
            AND o.user_id IS NOT DISTINCT FROM n.user_id AND o.deleted_at IS NULL AND o.id <> n.id))
), changed AS (
    UPDATE notes n
    SET (temperature, temperature_changed_at, weight, hits, importance, confidence, tags, last_hit_at, deleted_at,
         merged_into)
        = (SELECT r.temperature, r.temperature_changed_at, r.weight, r.hits, r.importance, r.confidence, r.tags,
                  r.last_hit_at, r.deleted_at, r.merged_into
           FROM jsonb_populate_record(n, l.after) AS r)
    FROM held l
    WHERE n.id = l.id
    RETURNING n.id, n.tenant, n.workspace, n.namespace, l.was, l.was_live, n.temperature, n.deleted_at IS NULL AS is_live
), kept AS (
    INSERT INTO job_changes AS j (run_id, relation, row_id, before, after)
    SELECT %(run_id)s, 'notes', l.id,
           (SELECT jsonb_object_agg(key, l.state -> key) FROM jsonb_object_keys(l.after) AS key), l.after
    FROM held l
    WHERE %(run_id)s::uuid IS NOT NULL
    ON CONFLICT (run_id, relation, row_id) DO UPDATE
    SET before = excluded.before || j.before, after = j.after || excluded.after
)
SELECT * FROM changed
