-- Demote every warm note that has been idle for its lifespan; a dry run only tells which.
-- The lifespan is that of lamina.lifecycle.lifespan. Locking in the order of ids keeps two sweeps from
-- waiting for each other, and looks again at a note that was found meanwhile.
WITH due AS (
    SELECT id, tenant, workspace, namespace
    FROM notes
    WHERE temperature = 'warm' AND deleted_at IS NULL
      AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
      AND %(now)s::timestamptz - last_hit_at
          >= make_interval(secs => %(days)s::float8 * 86400 * ln((hits + 1)::float8) / ln(2::float8))
    ORDER BY id
    LIMIT %(limit)s::bigint
    FOR UPDATE
), demoted AS (
    UPDATE notes n SET temperature = 'cold', temperature_changed_at = %(now)s
    FROM due
    WHERE n.id = due.id AND NOT %(dry_run)s
    RETURNING n.id, n.tenant, n.workspace, n.namespace
), emptied AS (
    UPDATE note_chunks c SET tsv = NULL
    FROM demoted
    WHERE c.note_id = demoted.id
), queued AS (
    INSERT INTO outbox (projection, memory_id)
    SELECT projection, demoted.id FROM demoted CROSS JOIN unnest(%(projections)s::text[]) AS projection
    ORDER BY demoted.id
    RETURNING seq
), bumped AS (
    INSERT INTO epochs AS e (tenant, workspace, namespace, outbox_seq)
    SELECT DISTINCT tenant, workspace, namespace, (SELECT coalesce(max(seq), 0) FROM queued) FROM demoted
    ORDER BY tenant, workspace, namespace
    ON CONFLICT (tenant, workspace, namespace) DO UPDATE SET epoch = e.epoch + 1, outbox_seq = greatest(e.outbox_seq, excluded.outbox_seq)
)
SELECT tenant, workspace, namespace, count(*) AS notes
FROM due
GROUP BY tenant, workspace, namespace
ORDER BY tenant, workspace, namespace
