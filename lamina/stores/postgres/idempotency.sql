-- name: lock_idempotency_key
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, hashtextextended(%(key)s, 0)))

-- name: find_idempotent_response
SELECT request_hash, response FROM idempotency_keys
WHERE tenant = %(tenant)s AND key = %(key)s AND created_at > %(cutoff)s

-- name: put_idempotent_response
-- The answer that may be there already has ended.
INSERT INTO idempotency_keys (tenant, key, request_hash, response, user_id)
VALUES (%(tenant)s, %(key)s, %(request_hash)s, %(response)s, %(user_id)s)
ON CONFLICT (tenant, key) DO UPDATE SET
    request_hash = excluded.request_hash, response = excluded.response, user_id = excluded.user_id, created_at = now()

-- name: purge_idempotency_keys
DELETE FROM idempotency_keys WHERE created_at <= %(cutoff)s AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)

-- name: erase_user_idempotency_keys
DELETE FROM idempotency_keys WHERE tenant = %(tenant)s AND user_id = %(user_id)s
