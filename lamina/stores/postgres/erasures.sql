-- name: order_erasure
-- One that still looks for rows of the user is returned as it is.
INSERT INTO erasures AS known (id, tenant, user_id, user_salt, user_hash, requested_at)
VALUES (%(id)s, %(tenant)s, %(user_id)s, %(user_salt)s, %(user_hash)s, %(now)s)
ON CONFLICT (tenant, user_id) WHERE user_id IS NOT NULL DO UPDATE SET requested_at = known.requested_at
RETURNING *

-- name: get_erasure
SELECT * FROM erasures WHERE id = %(id)s AND tenant = %(tenant)s

-- name: list_erasures
-- Of a user, or of all; of most only a salted hash of the name is kept.
SELECT * FROM erasures
WHERE tenant = %(tenant)s
  AND (%(user_id)s::text IS NULL OR sha256(user_salt || convert_to(%(user_id)s::text, 'UTF8')) = user_hash)
  AND (requested_at, id) < (coalesce(%(after_time)s::timestamptz, 'infinity'),
                            coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY requested_at DESC, id DESC
LIMIT %(limit)s

-- name: find_open_erasures
SELECT * FROM erasures WHERE state <> 'complete' ORDER BY requested_at, id

-- name: add_erased
-- What one more pass erased, by kind.
UPDATE erasures
SET erased = (
    SELECT coalesce(jsonb_object_agg(kind, total), '{}')
    FROM (
        SELECT kind, sum(number::bigint) AS total
        FROM (SELECT * FROM jsonb_each_text(erased) UNION ALL SELECT * FROM jsonb_each_text(%(erased)s)) AS pairs (kind, number)
        GROUP BY kind
    ) sums
)
WHERE id = %(id)s

-- name: record_look
UPDATE erasures SET left_over = %(left)s, audited = %(audited)s, waits_for = %(waits_for)s WHERE id = %(id)s

-- name: record_wait
UPDATE erasures SET waits_for = %(waits_for)s WHERE id = ANY(%(ids)s) AND state <> 'complete'

-- name: mark_emptied
UPDATE erasures
SET state = 'rewriting', user_id = NULL, emptied_at = %(now)s, left_over = %(left)s, audited = %(audited)s, waits_for = '[]'
WHERE id = %(id)s AND state = 'erasing'
RETURNING tenant

-- name: complete_erasure
UPDATE erasures SET state = 'complete', completed_at = %(now)s, receipt = %(receipt)s, waits_for = '[]'
WHERE id = %(id)s AND state = 'rewriting'

-- name: list_bound_users
SELECT DISTINCT unnest(users) AS name FROM api_keys WHERE tenant = %(tenant)s

-- name: put_receipt_key
INSERT INTO receipt_keys (id, public_key) VALUES (%(id)s, %(public_key)s) ON CONFLICT (id) DO NOTHING

-- name: list_receipt_keys
SELECT id, public_key, created_at FROM receipt_keys ORDER BY created_at, id

-- name: last_outbox_row
SELECT last_value FROM outbox_seq_seq

-- name: count_outbox_until
SELECT projection, count(*) AS pending FROM outbox
WHERE seq <= %(until)s AND projection = ANY(%(projections)s)
GROUP BY projection
ORDER BY projection

-- name: find_waiting_memories
SELECT DISTINCT memory_id FROM outbox WHERE projection = %(projection)s AND memory_id = ANY(%(ids)s)

-- name: list_former_stores
SELECT f.projection, f.store, f.left_at
FROM former_stores f
WHERE NOT EXISTS (SELECT FROM projection_stores s WHERE s.projection = f.projection AND s.store = f.store)
ORDER BY f.projection, f.store
