-- name: notice_a_lost_client
SET client_connection_check_interval = '10s'

-- name: find_bound_columns
-- The tables whose vectors are bound to one dimension, with it.
SELECT c.relname AS name, a.atttypmod AS dimension
FROM unnest(%(tables)s::text[]) AS wanted
JOIN pg_class c ON c.oid = to_regclass(wanted)
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'embedding' AND a.atttypmod > 0
ORDER BY c.relname

-- name: unbind_column
-- Changes the catalogue alone: no row is read or written. Its index of one dimension could take no other vector.
DROP INDEX IF EXISTS {table}_embedding, {table}_embedding_lists;
ALTER TABLE {table} ALTER COLUMN embedding TYPE vector;
-- In the row as long as a page holds it: the planner does not count the reading of what lies elsewhere, and compares
-- all vectors of a large scope in place of asking the index.
ALTER TABLE {table} ALTER COLUMN embedding SET STORAGE MAIN

-- name: find_indexed_generations
SELECT generation, dimension FROM embedding_generations WHERE state <> 'retired' ORDER BY is_active DESC, generation

-- name: find_valid_indexes
SELECT c.relname AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = ANY(ARRAY(SELECT to_regclass(wanted) FROM unnest(%(tables)s::text[]) AS wanted)) AND i.indisvalid

-- name: find_lists
SELECT c.relname AS name
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am m ON m.oid = c.relam AND m.amname = 'ivfflat'
WHERE i.indrelid = ANY(ARRAY(SELECT to_regclass(wanted) FROM unnest(%(tables)s::text[]) AS wanted))
LIMIT 1

-- name: drop_index
-- One whose building was interrupted serves no search, but takes every write.
DROP INDEX CONCURRENTLY IF EXISTS {name}

-- name: create_index
CREATE INDEX CONCURRENTLY {name} ON {table} USING hnsw ((embedding::{type}) {operators})
WITH (m = {m}, ef_construction = {ef_construction})
WHERE generation = {generation}{only}

-- name: create_bound_index
-- As the migrations make it.
CREATE INDEX CONCURRENTLY {name} ON {table} USING hnsw (embedding vector_cosine_ops)
WITH (m = {m}, ef_construction = {ef_construction})
WHERE true{only}

-- name: create_lists
CREATE INDEX CONCURRENTLY {name} ON {table} USING ivfflat ({expression} {operators})
WITH (lists = {lists})
WHERE {rows}{only}

-- name: count_rows
-- No further than is asked for.
SELECT count(*) AS rows FROM (SELECT FROM {table} WHERE {rows}{only} LIMIT {most}) counted

-- name: read_dimension
SELECT dimension FROM embedding_generations WHERE generation = %(generation)s

-- name: lock_vectors
SELECT pg_try_advisory_lock(%(key)s) AS is_locked
