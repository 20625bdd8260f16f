-- Take messages out of their sessions, or put them back, where they still are in the state that was decided upon; see
-- change_notes. Their vectors move with them. What a summary stands for that was itself compacted stays away with it.
WITH wanted AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::jsonb[], %(afters)s::jsonb[]) AS w (id, guard, after)
), held AS (
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
    INSERT INTO compacted_chunks (
        message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
        generation, embedding)
    SELECT message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
           generation, embedding
    FROM away
    ON CONFLICT DO NOTHING
), back AS (
    DELETE FROM compacted_chunks c USING changed
    WHERE c.message_id = changed.id AND changed.is_live
    RETURNING c.*
), put_back AS (
    INSERT INTO message_chunks (
        message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
        generation, embedding)
    SELECT message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
           generation, embedding
    FROM back
    ON CONFLICT DO NOTHING
), kept AS (
    INSERT INTO job_changes AS j (run_id, relation, row_id, before, after)
    SELECT %(run_id)s, 'messages', l.id,
           (SELECT jsonb_object_agg(key, l.state -> key) FROM jsonb_object_keys(l.after) AS key), l.after
    FROM held l
    WHERE %(run_id)s::uuid IS NOT NULL
    ON CONFLICT (run_id, relation, row_id) DO UPDATE
    SET before = excluded.before || j.before, after = j.after || excluded.after
)
SELECT * FROM changed
