-- name: order_operation
INSERT INTO operations (id, tenant, kind, workspace, namespace, user_id, agent_id, session_id, request, requested_at)
VALUES (%(id)s, %(tenant)s, %(kind)s, %(workspace)s, %(namespace)s, %(user_id)s, %(agent_id)s, %(session_id)s,
        %(request)s, %(now)s)
RETURNING *

-- name: get_operation
SELECT * FROM operations WHERE id = %(id)s AND tenant = %(tenant)s

-- name: find_open_operations
SELECT * FROM operations WHERE state = 'running' ORDER BY requested_at, id LIMIT 100

-- name: list_operations
-- Those of a namespace, and of the whole workspace or tenant.
SELECT * FROM operations
WHERE tenant = %(tenant)s AND (workspace IS NULL OR workspace = %(workspace)s)
  AND (namespace IS NULL OR namespace = %(namespace)s)
  AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
  AND id < coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
ORDER BY id DESC
LIMIT %(limit)s

-- name: hold_operation
-- Until the transaction ends: of two processes that work on it, one goes on where the other one ended.
SELECT cursor FROM operations WHERE id = %(id)s AND state = 'running' FOR UPDATE

-- name: advance_operation
UPDATE operations
SET cursor = %(cursor)s, waits_for = NULL,
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
UPDATE operations SET state = 'complete', completed_at = %(now)s, waits_for = NULL, request = %(request)s
WHERE id = %(id)s AND state = 'running'

-- name: record_operation_wait
UPDATE operations SET waits_for = %(waits_for)s WHERE id = %(id)s AND state = 'running'

-- name: erase_user_operations
DELETE FROM operations WHERE tenant = %(tenant)s AND user_id = %(user_id)s
