-- name: find_embeddings
-- Existing ones, each with its place among the keys, from 1.
SELECT asked.place, kept.embedding, kept.last_used_at
FROM unnest(%(tenants)s::text[], %(text_hashes)s::bytea[]) WITH ORDINALITY AS asked (tenant, text_hash, place)
JOIN embedding_cache kept
    ON kept.tenant = asked.tenant AND kept.generation = %(generation)s AND kept.text_hash = asked.text_hash

-- name: put_embeddings
-- In the order of their keys, so that two replicas cannot deadlock. An existing row stays, unless it is damaged or
-- was last used more than a day ago.
INSERT INTO embedding_cache AS kept (tenant, generation, text_hash, embedding, created_at, last_used_at)
SELECT tenant, %(generation)s, text_hash, embedding, used_at, used_at
FROM unnest(%(tenants)s::text[], %(text_hashes)s::bytea[], %(embeddings)s::bytea[], %(used)s::timestamptz[])
    AS new (tenant, text_hash, embedding, used_at)
ORDER BY tenant, text_hash
ON CONFLICT (tenant, generation, text_hash) DO UPDATE
    SET embedding = excluded.embedding, last_used_at = greatest(kept.last_used_at, excluded.last_used_at)
    WHERE kept.embedding <> excluded.embedding OR kept.last_used_at <= excluded.last_used_at - interval '1 day'

-- name: purge_expired_embeddings
DELETE FROM embedding_cache WHERE last_used_at <= %(cutoff)s AND tenant = %(tenant)s

-- name: purge_embeddings
DELETE FROM embedding_cache WHERE tenant = %(tenant)s

-- name: count_embeddings
SELECT count(*) AS entries, coalesce(sum(pg_column_size(kept.*)), 0)::bigint AS size_bytes
FROM embedding_cache kept
WHERE tenant = %(tenant)s
