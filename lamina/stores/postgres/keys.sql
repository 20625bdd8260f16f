-- name: find_key
SELECT tenant, role FROM api_keys WHERE hash = %(hash)s AND revoked_at IS NULL

-- name: insert_key
INSERT INTO api_keys (id, tenant, role, label, hint, hash)
VALUES (%(id)s, %(tenant)s, %(role)s, %(label)s, %(hint)s, %(hash)s)

-- name: list_keys
SELECT id, tenant, role, label, hint, created_at, revoked_at FROM api_keys ORDER BY created_at, id

-- name: revoke_key
UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = %(id)s RETURNING id
