-- name: set_for_session
-- Settings that the statements rely on. UTC: the server's time zone changes nothing. Iterative scans: a filter must
-- not starve an approximate index; pgvector has them since 0.8 and refuses the name before. Nothing is compiled: no
-- statement is long enough to be worth it.
SET TimeZone = 'UTC';
SET hnsw.ef_search = 32;
SET ivfflat.probes = 32;
SET jit = off;
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', false),
       set_config('ivfflat.iterative_scan', 'relaxed_order', false)
FROM pg_catalog.pg_extension
WHERE extname = 'vector' AND string_to_array(extversion, '.')::int[] >= '{0,8}';

-- name: begin
-- The settings of set_for_session within a transaction: behind a pooler the next transaction may have another
-- session.
BEGIN;
SET LOCAL TimeZone = 'UTC';
SET LOCAL hnsw.ef_search = 32;
SET LOCAL ivfflat.probes = 32;
SET LOCAL jit = off;
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('ivfflat.iterative_scan', 'relaxed_order', true)
FROM pg_catalog.pg_extension
WHERE extname = 'vector' AND string_to_array(extversion, '.')::int[] >= '{0,8}';
