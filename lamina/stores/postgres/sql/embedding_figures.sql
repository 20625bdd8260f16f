SELECT count(*) AS entries, coalesce(sum(pg_column_size(kept.*)), 0)::bigint AS size_bytes
FROM embedding_cache kept
WHERE tenant = %(tenant)s
