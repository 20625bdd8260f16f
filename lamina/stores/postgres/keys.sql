-- name: find_keys
SELECT id, tenant, role, verbs, workspaces, namespaces, users, agents, expires_at, hash
FROM api_keys
WHERE hash = ANY(%(hashes)s) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())

-- name: insert_key
INSERT INTO api_keys (id, tenant, role, label, hint, hash, verbs, workspaces, namespaces, users, agents, expires_at)
VALUES (%(id)s, %(tenant)s, %(role)s, %(name)s, %(hint)s, %(hash)s, %(verbs)s, %(workspaces)s, %(namespaces)s,
        %(users)s, %(agents)s, %(expires_at)s)
RETURNING id, tenant, role, label AS name, hint, verbs, workspaces, namespaces, users, agents, created_at, rotated_at,
          last_used_at, expires_at, revoked_at

-- name: count_keys
SELECT count(*) AS keys FROM api_keys
WHERE tenant = %(tenant)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())

-- name: list_all_keys
SELECT id, tenant, role, label AS name, hint, verbs, workspaces, namespaces, users, agents, created_at, rotated_at,
       last_used_at, expires_at, revoked_at
FROM api_keys
ORDER BY created_at, id

-- name: list_keys
-- Keys of a tenant; to a key that is bound, those that are bound within its bounds.
SELECT id, tenant, role, label AS name, hint, verbs, workspaces, namespaces, users, agents, created_at, rotated_at,
       last_used_at, expires_at, revoked_at
FROM api_keys
WHERE tenant = %(tenant)s
  AND (%(id)s::uuid IS NULL OR id = %(id)s)
  AND (cardinality(%(workspaces)s::text[]) = 0 OR workspaces <@ %(workspaces)s)
  AND (cardinality(%(namespaces)s::text[]) = 0 OR namespaces <@ %(namespaces)s)
  AND (cardinality(%(users)s::text[]) = 0 OR users <@ %(users)s)
  AND (cardinality(%(agents)s::text[]) = 0 OR agents <@ %(agents)s)
  AND (created_at, id) > (coalesce(%(after_time)s::timestamptz, '-infinity'),
                          coalesce(%(after_id)s::uuid, '00000000-0000-0000-0000-000000000000'))
ORDER BY created_at, id
LIMIT %(limit)s OFFSET %(offset)s

-- name: lock_key
SELECT id, tenant, role, label AS name, hint, verbs, workspaces, namespaces, users, agents, created_at, rotated_at,
       last_used_at, expires_at, revoked_at
FROM api_keys
WHERE id = %(id)s
FOR UPDATE

-- name: lock_admins
-- Keys that can make any other one of their tenant. Two of them that revoke each other take turns.
SELECT id FROM api_keys
WHERE tenant = %(tenant)s AND role = 'admin' AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
  AND (verbs IS NULL OR 'keys' = ANY(verbs))
  AND coalesce(workspaces, namespaces, users, agents) IS NULL
ORDER BY id
FOR UPDATE

-- name: rotate_key
UPDATE api_keys SET hash = %(hash)s, hint = %(hint)s, rotated_at = now()
WHERE id = %(id)s
RETURNING id, tenant, role, label AS name, hint, verbs, workspaces, namespaces, users, agents, created_at, rotated_at,
          last_used_at, expires_at, revoked_at

-- name: revoke_key
UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = %(id)s

-- name: note_key_uses
-- Once a minute at most, however many replicas see the key.
UPDATE api_keys k SET last_used_at = u.used_at
FROM unnest(%(ids)s::uuid[], %(moments)s::timestamptz[]) AS u (id, used_at)
WHERE k.id = u.id AND (k.last_used_at IS NULL OR k.last_used_at <= u.used_at - interval '1 minute')
