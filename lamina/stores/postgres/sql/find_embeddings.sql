-- Those that are kept, each with its place among those asked for, from 1.
SELECT asked.place, kept.embedding, kept.last_used_at
FROM unnest(%(tenants)s::text[], %(text_hashes)s::bytea[]) WITH ORDINALITY AS asked (tenant, text_hash, place)
JOIN embedding_cache kept
    ON kept.tenant = asked.tenant AND kept.generation = %(generation)s AND kept.text_hash = asked.text_hash
