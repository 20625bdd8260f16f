-- name: find_shares_into
SELECT id, from_workspace, from_namespace, to_workspace, segment, tags, label, created_at, expires_at, revoked_at
FROM shares
WHERE tenant = %(tenant)s AND to_workspace = %(workspace)s AND revoked_at IS NULL
  AND (expires_at IS NULL OR expires_at > %(now)s)
ORDER BY id

-- name: list_shares
-- Shares in both directions.
SELECT id, from_workspace, from_namespace, to_workspace, segment, tags, label, created_at, expires_at, revoked_at
FROM shares
WHERE tenant = %(tenant)s AND (from_workspace = %(workspace)s OR to_workspace = %(workspace)s)
  AND (created_at, id) < (coalesce(%(after_time)s::timestamptz, 'infinity'),
                       coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY created_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s

-- name: put_share
-- An equal share takes the new expiry and label, so that one revocation ends it.
INSERT INTO shares (id, tenant, from_workspace, from_namespace, to_workspace, segment, tags, label, created_at, expires_at)
VALUES (%(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(to_workspace)s, %(segment)s, %(tags)s, %(label)s,
        %(created_at)s, %(expires_at)s)
ON CONFLICT (tenant, from_workspace, from_namespace, to_workspace, segment, sha256_of(tags)) WHERE revoked_at IS NULL
DO UPDATE SET expires_at = EXCLUDED.expires_at, label = EXCLUDED.label
RETURNING id, from_workspace, from_namespace, to_workspace, segment, tags, label, created_at, expires_at, revoked_at

-- name: get_share
SELECT id, from_workspace, from_namespace, to_workspace, segment, tags, label, created_at, expires_at, revoked_at
FROM shares
WHERE id = %(id)s AND tenant = %(tenant)s

-- name: revoke_share
UPDATE shares SET revoked_at = coalesce(revoked_at, %(now)s)
WHERE id = %(id)s AND tenant = %(tenant)s
RETURNING to_workspace
