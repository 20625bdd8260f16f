-- name: bump_epoch
-- The outbox's sequence may have moved on by other rows: then an answer is cached a moment later, never too early.
-- It is read before the row is locked, so it must not go back behind the value of a commit meanwhile. A teaching
-- write shares a lock on the workspace until its end; the first response of an agent takes it alone. The first write
-- of a namespace, whose row a renaming of the workspace does not see, shares another one, which the renaming takes alone.
INSERT INTO epochs AS e (tenant, workspace, namespace, outbox_seq, taught_at, written_at)
SELECT %(tenant)s, %(workspace)s, %(namespace)s, (SELECT last_value FROM outbox_seq_seq),
       CASE WHEN %(teaches)s THEN clock_timestamp() END, clock_timestamp()
WHERE CASE WHEN %(teaches)s
      THEN pg_advisory_xact_lock_shared(hashtextextended(%(tenant)s, hashtextextended(%(workspace)s, 1)))::text = ''
      ELSE true END
  AND CASE WHEN NOT EXISTS (
          SELECT FROM epochs p
          WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s)
      THEN pg_advisory_xact_lock_shared(hashtextextended(%(tenant)s, hashtextextended(%(workspace)s, 5)))::text = ''
      ELSE true END
ON CONFLICT (tenant, workspace, namespace) DO UPDATE
SET epoch = e.epoch + 1, outbox_seq = greatest(e.outbox_seq, excluded.outbox_seq),
    taught_at = CASE WHEN %(teaches)s THEN clock_timestamp() ELSE e.taught_at END, written_at = excluded.written_at
RETURNING epoch, coalesce(e.renaming, (
    SELECT w.renaming FROM epochs w
    WHERE w.tenant = %(tenant)s AND w.workspace = %(workspace)s AND w.namespace = '')) AS renaming

-- name: lock_places
-- Shared until the end of the transaction, so that no renaming of the workspace begins; one that begins takes it alone.
SELECT pg_advisory_xact_lock_shared(hashtextextended(%(tenant)s, hashtextextended(%(workspace)s, 5)))

-- name: read_renamings
-- Of a namespace, and of the whole workspace.
SELECT renaming FROM epochs
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace IN ('', %(namespace)s) AND renaming IS NOT NULL

-- name: read_epoch
SELECT epoch FROM epochs WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s

-- name: read_former_names
SELECT jsonb_array_elements(former) AS place FROM epochs
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s

-- name: read_open_renaming
-- Also one that was given up halfway, until it is ordered again, or back: its mark is replaced then.
SELECT state FROM operations WHERE id = %(renaming)s AND state <> 'complete'

-- name: end_responses
-- A write of an agent makes its responses stale, one without an agent those of all agents; it counts as a write of
-- the workspace.
WITH locked AS (
    SELECT tenant, workspace, agent FROM response_agents
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent IN ('', coalesce(%(agent_id)s::text, ''))
    ORDER BY agent
    FOR UPDATE
)
UPDATE response_agents r
SET epoch = r.epoch + (r.agent = coalesce(%(agent_id)s::text, ''))::int, writes = r.writes + 1
FROM locked
WHERE (r.tenant, r.workspace, r.agent) = (locked.tenant, locked.workspace, locked.agent)

-- name: lock_lesson
-- Shared among teaching writes until the end of the transaction; the first response of an agent takes it alone.
SELECT pg_advisory_xact_lock_shared(hashtextextended(%(tenant)s, hashtextextended(%(workspace)s, 1)))

-- name: bump_workspace_epochs
-- A changed profile or share takes effect in every namespace, also in those without a row. In the order of the key,
-- so that two of these do not deadlock.
WITH whole AS (
    INSERT INTO epochs AS e (tenant, workspace, namespace, taught_at)
    VALUES (%(tenant)s, %(workspace)s, '', clock_timestamp())
    ON CONFLICT (tenant, workspace, namespace) DO UPDATE SET epoch = e.epoch + 1, taught_at = clock_timestamp()
    RETURNING e.renaming
), locked AS (
    SELECT tenant, workspace, namespace FROM epochs
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace <> ''
    ORDER BY namespace
    FOR UPDATE
), raised AS (
    UPDATE epochs e SET epoch = e.epoch + 1
    FROM locked
    WHERE (e.tenant, e.workspace, e.namespace) = (locked.tenant, locked.workspace, locked.namespace)
    RETURNING e.renaming
)
SELECT renaming FROM whole UNION SELECT renaming FROM raised

-- name: raise_epochs
-- Nothing that was cached for a tenant, or for one of its workspaces, is fresh any more.
WITH whole AS (
    INSERT INTO epochs AS e (tenant, workspace, namespace, taught_at)
    SELECT %(tenant)s, %(workspace)s, '', clock_timestamp() WHERE %(workspace)s::text IS NOT NULL
    ON CONFLICT (tenant, workspace, namespace) DO UPDATE SET epoch = e.epoch + 1, taught_at = clock_timestamp()
), locked AS (
    SELECT tenant, workspace, namespace FROM epochs
    WHERE tenant = %(tenant)s
      AND (%(workspace)s::text IS NULL OR (workspace = %(workspace)s AND namespace <> ''))
    ORDER BY workspace, namespace
    FOR UPDATE
)
UPDATE epochs e SET epoch = e.epoch + 1, taught_at = clock_timestamp()
FROM locked
WHERE (e.tenant, e.workspace, e.namespace) = (locked.tenant, locked.workspace, locked.namespace)

-- name: unsettle
-- A projection is filled anew: answers that were computed from it may be wrong, and so may new ones until it is
-- full.
UPDATE epochs e SET epoch = e.epoch + 1, outbox_seq = greatest(e.outbox_seq, (SELECT last_value FROM outbox_seq_seq))
FROM (
    SELECT tenant, workspace, namespace FROM epochs
    WHERE %(tenant)s::text IS NULL OR tenant = %(tenant)s
    ORDER BY tenant, workspace, namespace
    FOR UPDATE
) locked
WHERE (e.tenant, e.workspace, e.namespace) = (locked.tenant, locked.workspace, locked.namespace)
