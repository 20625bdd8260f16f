-- In the order of their keys, so that two replicas cannot deadlock. One that is there stays, unless it is damaged or it
-- was not used for a day.
INSERT INTO embedding_cache AS kept (tenant, generation, text_hash, embedding, created_at, last_used_at)
SELECT tenant, %(generation)s, text_hash, embedding, used_at, used_at
FROM unnest(%(tenants)s::text[], %(text_hashes)s::bytea[], %(embeddings)s::bytea[], %(used)s::timestamptz[])
    AS new (tenant, text_hash, embedding, used_at)
ORDER BY tenant, text_hash
ON CONFLICT (tenant, generation, text_hash) DO UPDATE
    SET embedding = excluded.embedding, last_used_at = greatest(kept.last_used_at, excluded.last_used_at)
    WHERE kept.embedding <> excluded.embedding OR kept.last_used_at <= excluded.last_used_at - interval '1 day'
