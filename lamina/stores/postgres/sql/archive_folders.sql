SELECT i.id, f.workspace, f.namespace
FROM archive_folders f, archive_identity i
WHERE f.tenant = %(tenant)s
ORDER BY f.workspace, f.namespace
