-- Where the archive has the files of a scope, and whether it was given any.
SELECT i.id, EXISTS (
    SELECT FROM archive_folders f
    WHERE f.tenant = %(tenant)s AND f.workspace = %(workspace)s AND f.namespace = %(namespace)s
) AS is_begun
FROM archive_identity i
