-- The same share once more takes the new expiry and label; one revocation then ends it.
INSERT INTO shares (id, tenant, from_workspace, from_namespace, to_workspace, segment, tags, label, created_at, expires_at)
VALUES (%(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(to_workspace)s, %(segment)s, %(tags)s, %(label)s,
        %(created_at)s, %(expires_at)s)
ON CONFLICT (tenant, from_workspace, from_namespace, to_workspace, segment, sha256_of(tags)) WHERE revoked_at IS NULL
DO UPDATE SET expires_at = EXCLUDED.expires_at, label = EXCLUDED.label
RETURNING id, from_workspace, from_namespace, to_workspace, segment, tags, label, created_at, expires_at, revoked_at
