DELETE FROM embedding_cache WHERE last_used_at <= %(cutoff)s
