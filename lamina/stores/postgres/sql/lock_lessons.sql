-- Wait for whoever is just teaching in a workspace, and keep others from it until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, hashtextextended(%(workspace)s, 1)))
