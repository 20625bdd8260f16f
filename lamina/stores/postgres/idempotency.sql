-- name: lock_idempotency_key
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, hashtextextended(%(key)s, 0)))

-- name: find_idempotent_response
-- The release before stored keys as they were sent.
SELECT request_hash, response FROM idempotency_keys
WHERE tenant = %(tenant)s AND key IN (%(key)s, keyed_hash(%(tenant)s, %(key)s)) AND created_at > %(cutoff)s
ORDER BY created_at DESC
LIMIT 1

-- name: put_idempotent_response
-- The answer that may be there already has ended.
INSERT INTO idempotency_keys (tenant, key, request_hash, response, user_hash)
VALUES (
    %(tenant)s, keyed_hash(%(tenant)s, %(key)s), %(request_hash)s, %(response)s, keyed_hash(%(tenant)s, %(user_id)s)
)
ON CONFLICT (tenant, key) DO UPDATE SET
    request_hash = excluded.request_hash, response = excluded.response, user_hash = excluded.user_hash, created_at = now()

-- name: purge_idempotency_keys
DELETE FROM idempotency_keys WHERE created_at <= %(cutoff)s AND tenant = %(tenant)s
