-- name: lock_idempotency_key
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, hashtextextended(%(key)s, 0)))

-- name: find_idempotent_response
SELECT request_hash, response FROM idempotency_keys WHERE tenant = %(tenant)s AND key = %(key)s

-- name: insert_idempotent_response
INSERT INTO idempotency_keys (tenant, key, request_hash, response)
VALUES (%(tenant)s, %(key)s, %(request_hash)s, %(response)s)
