-- Whoever writes or rewrites files of a scope does it alone, until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended(%(folder)s, 2))
