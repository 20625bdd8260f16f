-- name: read_vector_version
SELECT coalesce(installed_version, default_version) AS version
FROM pg_catalog.pg_available_extensions
WHERE name = 'vector'
