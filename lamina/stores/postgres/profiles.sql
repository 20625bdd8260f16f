-- name: lock_profile
-- An older release writes another version without a word on its fields: none of them is verified then.
INSERT INTO profiles (tenant, workspace, namespace, user_id, document, version)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s, '{}', 0)
ON CONFLICT (tenant, workspace, namespace, user_id) DO UPDATE SET version = profiles.version
RETURNING document, version, field_times, updated_at,
          CASE WHEN verified_version = version THEN verified_fields ELSE '{}' END AS verified_fields

-- name: put_profile
UPDATE profiles SET document = %(document)s, field_times = %(field_times)s, version = %(version)s,
    verified_fields = %(verified_fields)s, verified_version = %(version)s, updated_at = %(now)s
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND user_id = %(user_id)s

-- name: put_field_times
UPDATE profiles SET field_times = %(field_times)s, verified_fields = %(verified_fields)s, verified_version = version
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND user_id = %(user_id)s

-- name: insert_profile_version
-- Beside the new one, the latest so many are kept.
WITH ended AS (
    DELETE FROM profile_versions
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND user_id = %(user_id)s
      AND version < %(version)s - %(kept)s
)
INSERT INTO profile_versions (tenant, workspace, namespace, user_id, version, patch, document, written_at)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s, %(version)s, %(patch)s, %(document)s, %(now)s)

-- name: find_statements_of
-- What a message stated in the versions that are kept.
SELECT told.statement
FROM profile_versions v
CROSS JOIN json_array_elements(CASE WHEN json_typeof(v.patch) = 'array' THEN v.patch ELSE '[]' END) AS told (statement)
WHERE v.tenant = %(tenant)s AND v.workspace = %(workspace)s AND v.namespace = %(namespace)s AND v.user_id = %(user_id)s
  AND told.statement ->> 'source' = %(source)s
ORDER BY v.version

-- name: get_profile
SELECT document, version, field_times, updated_at,
       CASE WHEN verified_version = version THEN verified_fields ELSE '{}' END AS verified_fields
FROM profiles
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND user_id = %(user_id)s

-- name: get_profile_layers
-- The user's profile in the namespace, then that of the whole tenant.
SELECT document, version, field_times, updated_at,
       CASE WHEN verified_version = version THEN verified_fields ELSE '{}' END AS verified_fields, workspace
FROM profiles
WHERE tenant = %(tenant)s AND user_id = %(user_id)s
  AND (workspace, namespace) IN ((%(workspace)s, %(namespace)s), ('', ''))

-- name: get_profile_version
SELECT document FROM profile_versions
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND user_id = %(user_id)s
  AND version = %(version)s

-- name: list_profile_versions
SELECT version, document, written_at
FROM profile_versions
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND user_id = %(user_id)s
  AND version < coalesce(%(after_version)s::bigint, 9223372036854775807)
ORDER BY version DESC
LIMIT %(limit)s
