-- name: list_tables
-- Every table that may name a user or hold a text; a test compares with the schema. That of erasures is the last one.
SELECT name FROM unnest('{
    agent_turns, api_keys, archived_notes, compacted_chunks, discarded_edges, discarded_entities, discarded_evidence,
    discarded_mentions, documents, edge_evidence, edge_replacements, edges,
    embedding_cache, entities, entity_embeddings, entity_names, events, file_versions, idempotency_keys, job_changes, job_partitions, memory_links,
    message_chunks, messages, note_chunks, note_versions, notes, operations, passage_chunks, passages,
    procedure_embeddings, procedure_outcomes, procedures, profile_versions, profiles, response_chains, responses, sessions, trash,
    erasures
}'::text[]) WITH ORDINALITY AS tables (name, place)
ORDER BY place

-- name: current_transaction
SELECT pg_current_xact_id()::text AS xid

-- name: find_older_readers
-- Those who may still read what was deleted before a transaction: sessions of this database, prepared transactions, and
-- standbys, by way of their slots. Autovacuum reads nothing that others deleted, but while it takes samples.
SELECT count(*) AS readers FROM (
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND query !~ '^autovacuum: VACUUM (?!ANALYZE)'
      AND (age(backend_xmin) > age(%(xid)s::text::xid) OR age(backend_xid) > age(%(xid)s::text::xid))
    UNION ALL
    SELECT FROM pg_prepared_xacts WHERE database = current_database() AND age(transaction) > age(%(xid)s::text::xid)
    UNION ALL
    SELECT FROM pg_replication_slots WHERE age(xmin) > age(%(xid)s::text::xid)
) held

-- name: measure_table
SELECT pg_total_relation_size(%(table)s::text::regclass) AS size_bytes

-- name: list_indexes
-- Vectors are left out: a deleted one is overwritten when its table is vacuumed, and their indexes take long to make.
SELECT i.indexrelid::regclass::text AS name
FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_am a ON a.oid = c.relam
WHERE i.indrelid = %(table)s::text::regclass AND a.amname <> 'hnsw'
ORDER BY name

-- name: list_statistics
SELECT a.attname FROM pg_statistic s
JOIN pg_attribute a ON a.attrelid = s.starelid AND a.attnum = s.staattnum
WHERE s.starelid = %(table)s::text::regclass

-- name: clear_statistics
-- From Postgres 18 on: the owner of a table may do this.
SELECT pg_clear_attribute_stats('public', %(table)s, %(column)s, false)

-- name: delete_statistics
DELETE FROM pg_statistic WHERE starelid = %(table)s::text::regclass

-- name: file_of_statistics
SELECT pg_relation_filenode('pg_catalog.pg_statistic') AS number

-- name: forget_cursors
-- The cursors of partitions that are done, which name sessions.
UPDATE job_partitions SET cursor = NULL WHERE is_done AND cursor IS NOT NULL
