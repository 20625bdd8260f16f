-- name: enqueue
-- With the namespace of notes for the projection that has an index for each: the note may be gone when it is applied.
-- The notification names the projections; one without a name, as an earlier release sends, is for all.
WITH added AS (
    INSERT INTO outbox (projection, memory_id, tenant, workspace, namespace)
    SELECT e.projection, e.id, CASE e.projection WHEN 'cold' THEN n.tenant ELSE %(tenant)s END, n.workspace, n.namespace
    FROM unnest(%(projections)s::text[], %(ids)s::uuid[]) WITH ORDINALITY AS e (projection, id, place)
    LEFT JOIN LATERAL (
        SELECT tenant, workspace, namespace FROM notes WHERE id = e.id AND e.projection = 'cold' OFFSET 0
    ) n ON true
    ORDER BY e.place
)
SELECT pg_notify('lamina_outbox', %(notified)s)

-- name: enqueue_links_to
-- Notes that are linked to these; each note is linked to a few others at most.
INSERT INTO outbox (projection, memory_id)
SELECT DISTINCT 'graph', from_id FROM memory_links WHERE to_id = ANY(%(ids)s::uuid[]) AND kind = 'similar'

-- name: take_outbox
-- With the build that is to have them as well. One that is ordered later reads every memory that these rows are of.
SELECT seq, memory_id,
       (SELECT build FROM projection_stores WHERE projection = %(projection)s AND building_until IS NOT NULL) AS build
FROM outbox
WHERE projection = %(projection)s AND seq <> ALL(%(applied)s::bigint[])
ORDER BY seq
LIMIT %(limit)s

-- name: take_outbox_in_turns
-- In turns of the tenants whose requests wrote the rows; those of jobs and of earlier releases, which name none, are one.
WITH RECURSIVE tenants (tenant) AS (
    (SELECT tenant FROM outbox WHERE projection = %(projection)s AND tenant IS NOT NULL ORDER BY tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT o.tenant FROM outbox o
            WHERE o.projection = %(projection)s AND o.tenant > t.tenant ORDER BY o.tenant LIMIT 1)
    FROM tenants t
    WHERE t.tenant IS NOT NULL
), waiting AS (
    SELECT w.seq, w.memory_id, row_number() OVER (PARTITION BY t.tenant ORDER BY w.seq) AS turn
    FROM tenants t
    CROSS JOIN LATERAL (
        SELECT o.seq, o.memory_id FROM outbox o
        WHERE o.projection = %(projection)s AND o.tenant = t.tenant AND o.seq <> ALL(%(applied)s::bigint[])
        ORDER BY o.seq
        LIMIT %(limit)s
    ) w
    UNION ALL
    SELECT w.seq, w.memory_id, row_number() OVER (ORDER BY w.seq)
    FROM (
        SELECT seq, memory_id FROM outbox
        WHERE projection = %(projection)s AND tenant IS NULL AND seq <> ALL(%(applied)s::bigint[])
        ORDER BY seq
        LIMIT %(limit)s
    ) w
)
SELECT seq, memory_id,
       (SELECT build FROM projection_stores WHERE projection = %(projection)s AND building_until IS NOT NULL) AS build
FROM waiting
ORDER BY turn, seq
LIMIT %(limit)s

-- name: take_outbox_of_cold
-- In turns of the tenants, and of few namespaces at once: each has an index that is opened.
WITH RECURSIVE tenants (tenant) AS (
    (SELECT tenant FROM outbox WHERE projection = 'cold' AND tenant IS NOT NULL ORDER BY tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT o.tenant FROM outbox o
            WHERE o.projection = 'cold' AND o.tenant > t.tenant ORDER BY o.tenant LIMIT 1)
    FROM tenants t
    WHERE t.tenant IS NOT NULL
), present AS (
    SELECT tenant FROM tenants WHERE tenant IS NOT NULL
), waiting AS (
    SELECT w.seq, w.memory_id, w.tenant, w.workspace, w.namespace,
           row_number() OVER (PARTITION BY w.tenant ORDER BY w.seq) AS turn
    FROM present p
    CROSS JOIN LATERAL (
        SELECT o.seq, o.memory_id, o.tenant, o.workspace, o.namespace FROM outbox o
        WHERE o.projection = 'cold' AND o.tenant = p.tenant AND o.seq <> ALL(%(applied)s::bigint[])
        ORDER BY o.seq
        LIMIT greatest(1, %(limit)s / (SELECT count(*) FROM present))
    ) w
    UNION ALL
    SELECT w.seq, w.memory_id, NULL, NULL, NULL, row_number() OVER (ORDER BY w.seq)
    FROM (
        SELECT seq, memory_id FROM outbox
        WHERE projection = 'cold' AND tenant IS NULL AND seq <> ALL(%(applied)s::bigint[])
        ORDER BY seq
        LIMIT %(limit)s
    ) w
), grouped AS (
    SELECT seq, memory_id, turn,
           min(turn) OVER namespaces AS first_turn, min(seq) OVER namespaces AS first_seq
    FROM waiting
    WINDOW namespaces AS (PARTITION BY tenant, workspace, namespace)
), ranked AS (
    SELECT seq, memory_id, turn, dense_rank() OVER (ORDER BY first_turn, first_seq) AS place FROM grouped
)
SELECT seq, memory_id,
       (SELECT build FROM projection_stores WHERE projection = %(projection)s AND building_until IS NOT NULL) AS build
FROM ranked
WHERE place <= %(namespaces)s
ORDER BY turn, seq
LIMIT %(limit)s

-- name: finish_outbox
DELETE FROM outbox WHERE seq = ANY(%(seqs)s)

-- name: give_up_outbox
-- Old changes of projections that no service takes: a store that comes back must take over everything instead.
WITH old AS (
    SELECT seq FROM outbox
    WHERE projection <> ALL(%(kept)s) AND created_at < %(before)s
    ORDER BY seq
    LIMIT %(limit)s
), given_up AS (
    DELETE FROM outbox o USING old WHERE o.seq = old.seq RETURNING o.projection
), stale AS (
    INSERT INTO projection_stores (projection, filled_at)
    SELECT DISTINCT projection, '-infinity'::timestamptz FROM given_up
    ON CONFLICT (projection) DO UPDATE SET filled_at = excluded.filled_at
)
SELECT count(*) AS rows FROM given_up

-- name: measure_lag
SELECT projection,
       count(*) AS pending,
       extract(epoch FROM clock_timestamp() - min(created_at))::float8 AS oldest_s
FROM outbox
GROUP BY projection
ORDER BY projection
