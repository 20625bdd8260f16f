DELETE FROM provider_cache_metrics WHERE recorded_at <= %(cutoff)s AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
