-- name: record_changes
INSERT INTO job_changes (run_id, relation, row_id, before, after)
SELECT %(run_id)s, %(relation)s, c.id, c.before, c.after
FROM unnest(%(ids)s::uuid[], %(befores)s::jsonb[], %(afters)s::jsonb[]) AS c (id, before, after)
ON CONFLICT (run_id, relation, row_id) DO NOTHING

-- name: take_changes
-- A page of a run's changes in one relation, by id, removed in the transaction of the undo.
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

-- name: delete_old_changes
-- Changes that can no longer be undone.
WITH old AS (
    SELECT id FROM job_runs WHERE finished_at < %(before)s::timestamptz AND state <> 'undoing'
)
DELETE FROM job_changes j USING old WHERE j.run_id = old.id

-- fragment: with_wanted
WITH wanted AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::jsonb[], %(afters)s::jsonb[]) AS w (id, guard, after)
)

-- fragment: kept
-- The columns before, for the undo of the run, if there is one.
kept AS (
    INSERT INTO job_changes AS j (run_id, relation, row_id, before, after)
    SELECT %(run_id)s, %(relation)s, l.id,
           (SELECT jsonb_object_agg(key, l.state -> key) FROM jsonb_object_keys(l.after) AS key), l.after
    FROM held l
    WHERE %(run_id)s::uuid IS NOT NULL
    ON CONFLICT (run_id, relation, row_id) DO UPDATE
    SET before = excluded.before || j.before, after = j.after || excluded.after
)

-- fragment: columns_of_chunks
message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end, generation,
embedding

-- name: lock_rows_messages
-- Locked before the comparison: a statement that waits for a row goes on with its snapshot from before the wait.
SELECT id FROM messages WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id FOR UPDATE

-- name: change_messages
-- Take messages out of their sessions, or put them back, if they are in the expected state; see change_notes. Their
-- vectors move with them. A message whose summary was itself compacted stays out with it.
/*with_wanted*/, held AS (
    SELECT n.id, w.after,
           jsonb_build_object('compacted_at', n.compacted_at, 'compacted_into', n.compacted_into) AS state
    FROM wanted w
    JOIN messages n ON n.id = w.id
    CROSS JOIN LATERAL jsonb_populate_record(n, w.guard) AS r
    WHERE n.id = ANY(%(ids)s::uuid[]) AND (%(tenant)s::text IS NULL OR n.tenant = %(tenant)s)
      AND (r.compacted_at, r.compacted_into) IS NOT DISTINCT FROM (n.compacted_at, n.compacted_into)
      AND NOT EXISTS (SELECT FROM messages s WHERE s.id = n.compacted_into AND s.compacted_at IS NOT NULL)
), changed AS (
    UPDATE messages n
    SET (compacted_at, compacted_into)
        = (SELECT r.compacted_at, r.compacted_into FROM jsonb_populate_record(n, l.after) AS r)
    FROM held l
    WHERE n.id = l.id
    RETURNING n.id, n.tenant, n.workspace, n.namespace, n.compacted_at IS NULL AS is_live
), away AS (
    DELETE FROM message_chunks c USING changed
    WHERE c.message_id = changed.id AND NOT changed.is_live
    RETURNING c.*
), put_away AS (
    INSERT INTO compacted_chunks (/*columns_of_chunks*/)
    SELECT /*columns_of_chunks*/ FROM away
    ON CONFLICT DO NOTHING
), back AS (
    DELETE FROM compacted_chunks c USING changed
    WHERE c.message_id = changed.id AND changed.is_live
    RETURNING c.*
), put_back AS (
    INSERT INTO message_chunks (/*columns_of_chunks*/)
    SELECT /*columns_of_chunks*/ FROM back
    ON CONFLICT DO NOTHING
), /*kept*/
SELECT * FROM changed

-- name: lock_rows_notes
-- Locked before the comparison: a statement that waits for a row goes on with its snapshot from before the wait.
SELECT id FROM notes WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id FOR UPDATE

-- name: change_notes
-- Change notes that are in the expected state, and record their columns before for the undo of the run, if there is
-- one. They are locked (lock_rows_notes). A deleted note does not come back if the scope has its text again. The ids
-- stand twice, for otherwise a page among a million notes is joined with all of them.
/*with_wanted*/, held AS (
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
), /*kept*/
SELECT * FROM changed

-- name: lock_rows_entities
-- As for notes; in the order in which writers put entities.
SELECT id FROM entities WHERE id = ANY(%(ids)s::uuid[]) ORDER BY key COLLATE "C", id FOR UPDATE

-- name: change_entities
-- Change entities that are in the expected state; see change_notes.
/*with_wanted*/, held AS (
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
), /*kept*/
SELECT * FROM changed

-- name: lock_rows_edges
-- Locked before the comparison: a statement that waits for a row goes on with its snapshot from before the wait.
SELECT id FROM edges WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id FOR UPDATE

-- name: change_edges
-- Change edges that are in the expected state; see change_notes.
/*with_wanted*/, held AS (
    SELECT n.id, w.after, jsonb_build_object('standing', n.standing, 'last_seen_at', n.last_seen_at) AS state
    FROM wanted w
    JOIN edges n ON n.id = w.id
    CROSS JOIN LATERAL jsonb_populate_record(n, w.guard) AS r
    WHERE n.id = ANY(%(ids)s::uuid[]) AND (%(tenant)s::text IS NULL OR n.tenant = %(tenant)s)
      AND (r.standing, r.last_seen_at) IS NOT DISTINCT FROM (n.standing, n.last_seen_at)
), changed AS (
    UPDATE edges n
    SET standing = (SELECT r.standing FROM jsonb_populate_record(n, l.after) AS r)
    FROM held l
    WHERE n.id = l.id
    RETURNING n.id, n.from_id, n.tenant, n.workspace, n.namespace
), /*kept*/
SELECT * FROM changed
