-- name: vector_versions
SELECT coalesce(installed_version, default_version) AS version
FROM pg_catalog.pg_available_extensions
WHERE name = 'vector'
