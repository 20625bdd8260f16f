-- Share the workspace's lock with others who teach, until the end of the transaction; a first response takes it alone.
SELECT pg_advisory_xact_lock_shared(hashtextextended(%(tenant)s, hashtextextended(%(workspace)s, 1)))
