SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, hashtextextended(%(key)s, 0)))
