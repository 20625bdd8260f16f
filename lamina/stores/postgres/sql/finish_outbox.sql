DELETE FROM outbox WHERE seq = ANY(%(seqs)s)
