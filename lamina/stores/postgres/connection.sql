-- name: set_for_session
-- All that statements rely on. UTC: the server's time zone changes nothing. Iterative scans: a filter must not starve
-- an approximate index; pgvector has them from 0.8 on, and before refuses the name.
SET TimeZone = 'UTC';
SET hnsw.ef_search = 32;
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', false)
FROM pg_catalog.pg_extension
WHERE extname = 'vector' AND string_to_array(extversion, '.')::int[] >= '{0,8}';

-- name: begin
-- A transaction with the same as set_for_session sets: behind a pooler the next one may have another session.
BEGIN;
SET LOCAL TimeZone = 'UTC';
SET LOCAL hnsw.ef_search = 32;
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true)
FROM pg_catalog.pg_extension
WHERE extname = 'vector' AND string_to_array(extversion, '.')::int[] >= '{0,8}';
