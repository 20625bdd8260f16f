DELETE FROM provider_cache_metrics WHERE recorded_at <= %(cutoff)s
