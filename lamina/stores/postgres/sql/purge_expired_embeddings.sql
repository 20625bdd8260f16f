DELETE FROM embedding_cache WHERE last_used_at <= %(cutoff)s AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
