INSERT INTO profile_versions (tenant, workspace, namespace, user_id, version, patch, document, written_at)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s, %(version)s, %(patch)s, %(document)s, %(now)s)
