-- About how many rows the tables have and how large the database is, from Postgres's own statistics: counts nothing.
SELECT c.relname AS relation,
       CASE WHEN s.n_live_tup > 0 THEN s.n_live_tup ELSE greatest(c.reltuples, 0) END::float8 AS rows,
       pg_database_size(current_database()) AS database_bytes
FROM pg_class c
JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%(relations)s)
