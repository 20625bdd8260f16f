-- The sequence may have moved on by others' rows: then the answer is cached a moment later, never too early. It was
-- read before the row was locked: it never goes back behind one that a commit meanwhile left.
-- Who teaches shares a lock on the workspace until its end, which an agent's first response takes alone.
INSERT INTO epochs AS e (tenant, workspace, namespace, outbox_seq, taught_at)
SELECT %(tenant)s, %(workspace)s, %(namespace)s, (SELECT last_value FROM outbox_seq_seq),
       CASE WHEN %(teaches)s THEN clock_timestamp() END
WHERE CASE WHEN %(teaches)s
      THEN pg_advisory_xact_lock_shared(hashtextextended(%(tenant)s, hashtextextended(%(workspace)s, 1)))::text = ''
      ELSE true END
ON CONFLICT (tenant, workspace, namespace) DO UPDATE
SET epoch = e.epoch + 1, outbox_seq = greatest(e.outbox_seq, excluded.outbox_seq),
    taught_at = CASE WHEN %(teaches)s THEN clock_timestamp() ELSE e.taught_at END
RETURNING epoch
