-- name: order_operation
INSERT INTO operations (id, tenant, kind, workspace, namespace, user_id, agent_id, session_id, request, requested_at)
VALUES (%(id)s, %(tenant)s, %(kind)s, %(workspace)s, %(namespace)s, %(user_id)s, %(agent_id)s, %(session_id)s,
        %(request)s, %(now)s)
RETURNING *

-- name: get_operation
SELECT * FROM operations WHERE id = %(id)s AND tenant = %(tenant)s

-- name: find_open_operations
-- Those at which nobody works now, and that need not wait after a failure.
SELECT * FROM operations WHERE state = 'running' AND (retry_at IS NULL OR retry_at <= statement_timestamp())
ORDER BY requested_at, id LIMIT 100

-- name: list_operations
-- Those of a namespace, and of the whole workspace or tenant; a renaming under either name.
SELECT * FROM operations
WHERE tenant = %(tenant)s
  AND (workspace IS NULL OR workspace = %(workspace)s
       OR kind = 'rename_scope' AND request ->> 'to_workspace' = %(workspace)s)
  AND (namespace IS NULL OR namespace = %(namespace)s
       OR kind = 'rename_scope' AND request ->> 'to_namespace' = %(namespace)s)
  AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
  AND id < coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
ORDER BY id DESC
LIMIT %(limit)s

-- name: claim_operation
-- For a step, if it stands where it was read: nobody else works on it until the step ends, or the time is over.
UPDATE operations SET retry_at = statement_timestamp() + %(step)s::interval
WHERE id = %(id)s AND state = 'running' AND cursor IS NOT DISTINCT FROM %(cursor)s
  AND (retry_at IS NULL OR retry_at <= statement_timestamp())

-- name: hold_operation
-- Until the transaction ends: of two processes that work on it, one goes on where the other one ended.
SELECT cursor FROM operations WHERE id = %(id)s AND state = 'running' FOR UPDATE

-- name: advance_operation
UPDATE operations
SET cursor = %(cursor)s, waits_for = NULL, failures = 0, retry_at = NULL,
    counts = (
        SELECT coalesce(jsonb_object_agg(kind, total), '{}')
        FROM (
            SELECT kind, sum(number::bigint) AS total
            FROM (SELECT * FROM jsonb_each_text(counts) UNION ALL SELECT * FROM jsonb_each_text(%(counts)s)) AS p (kind, number)
            GROUP BY kind
        ) sums
    )
WHERE id = %(id)s

-- name: complete_operation
UPDATE operations SET state = 'complete', completed_at = %(now)s, waits_for = NULL, retry_at = NULL, request = %(request)s,
    receipt = %(receipt)s
WHERE id = %(id)s AND state = 'running'

-- name: record_operation_wait
-- The first failure is tried again at once, later ones after twice as long each, at most five minutes. The last one ends
-- the operation, whose request may name users; that of a renaming, which may be ordered again, names scopes alone.
UPDATE operations
SET waits_for = %(waits_for)s, failures = failures + 1,
    retry_at = statement_timestamp() + make_interval(secs => least(300, 2 ^ (failures + 1) - 2)),
    state = CASE WHEN failures + 1 >= %(most)s THEN 'failed' ELSE state END,
    completed_at = CASE WHEN failures + 1 >= %(most)s THEN statement_timestamp() END,
    request = CASE WHEN failures + 1 >= %(most)s AND kind <> 'rename_scope' THEN '{}' ELSE request END
WHERE id = %(id)s AND state = 'running'

-- name: erase_user_operations
-- Those of others that go on under conditions that name the user end without them, and can still be followed. Those that
-- are over and were over a session of which nothing is left go as well: its name was the user's.
WITH ended AS (
    UPDATE operations
    SET state = 'failed', completed_at = statement_timestamp(), retry_at = NULL, request = '{}',
        waits_for = 'its conditions name a user who was erased'
    WHERE tenant = %(tenant)s AND user_id IS DISTINCT FROM %(user_id)s AND state = 'running'
      AND jsonb_path_exists(request::jsonb, '$.filters.** ? (@ == $user)', jsonb_build_object('user', %(user_id)s::text))
    RETURNING id
), deleted AS (
    DELETE FROM operations WHERE tenant = %(tenant)s AND user_id = %(user_id)s RETURNING id
), forgotten AS (
    DELETE FROM operations o
    WHERE o.tenant = %(tenant)s AND o.user_id IS DISTINCT FROM %(user_id)s AND o.state <> 'running'
      AND o.session_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM trash t WHERE t.tenant = o.tenant AND t.operation_id = o.id)
      AND NOT EXISTS (
          SELECT FROM unnest(ARRAY[o.session_id, o.request ->> 'to_session']) AS named (session_id)
          WHERE EXISTS (SELECT FROM sessions s
                        WHERE s.tenant = o.tenant AND s.workspace = o.workspace AND s.namespace = o.namespace
                          AND s.session_id = named.session_id)
             OR EXISTS (SELECT FROM messages m
                        WHERE m.tenant = o.tenant AND m.workspace = o.workspace AND m.namespace = o.namespace
                          AND m.session_id = named.session_id)
             OR EXISTS (SELECT FROM notes n
                        WHERE n.tenant = o.tenant AND n.workspace = o.workspace AND n.namespace = o.namespace
                          AND n.session_id = named.session_id AND n.deleted_at IS NULL))
    RETURNING o.id
)
SELECT (SELECT count(*) FROM ended) + (SELECT count(*) FROM deleted) + (SELECT count(*) FROM forgotten) AS operations
