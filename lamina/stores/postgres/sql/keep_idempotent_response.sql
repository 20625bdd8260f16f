INSERT INTO idempotency_keys (tenant, key, request_hash, response)
VALUES (%(tenant)s, %(key)s, %(request_hash)s, %(response)s)
