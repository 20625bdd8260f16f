-- name: read_quotas
SELECT tenant, subject, resource, amount FROM quotas

-- name: set_quota
INSERT INTO quotas (tenant, subject, resource, amount)
VALUES (%(tenant)s, %(subject)s, %(resource)s, %(amount)s)
ON CONFLICT (tenant, subject, resource) DO UPDATE SET amount = excluded.amount

-- name: drop_quota
DELETE FROM quotas WHERE tenant = %(tenant)s AND subject = %(subject)s AND resource = %(resource)s

-- name: open_windows
INSERT INTO quota_windows (tenant, subject, resource, started_at, granted)
SELECT tenant, subject, resource, 'epoch', 0
FROM unnest(%(tenants)s::text[], %(subjects)s::text[], %(resources)s::text[]) AS asked (tenant, subject, resource)
ON CONFLICT DO NOTHING

-- name: take_grants
WITH asked AS (
    SELECT *
    FROM unnest(
        %(tenants)s::text[], %(subjects)s::text[], %(resources)s::text[], %(windows_s)s::int[], %(amounts)s::bigint[],
        %(settled)s::bigint[], %(wanted)s::bigint[], %(needed)s::bigint[]
    ) AS asked (tenant, subject, resource, window_s, amount, settled, wanted, needed)
), held AS (
    SELECT asked.*, w.granted, w.started_at,
        greatest(w.started_at, to_timestamp(floor(extract(epoch FROM now()) / window_s) * window_s)) AS begins_at
    FROM quota_windows w JOIN asked USING (tenant, subject, resource)
    ORDER BY tenant, subject, resource
    FOR UPDATE OF w
), decided AS (
    SELECT *, CASE WHEN started_at = begins_at THEN granted ELSE 0 END + settled AS before FROM held
), given AS (
    SELECT *, CASE WHEN needed <= amount - before THEN least(greatest(wanted, needed), amount - before)
        ELSE least(wanted, greatest(amount - before, 0)) END AS given
    FROM decided
)
UPDATE quota_windows w
SET started_at = given.begins_at, granted = given.before + given.given
FROM given
WHERE (w.tenant, w.subject, w.resource) = (given.tenant, given.subject, given.resource)
RETURNING w.tenant, w.subject, w.resource, given.given, greatest(given.amount - w.granted, 0) AS "left",
    extract(epoch FROM given.begins_at + given.window_s * interval '1 second' - now())::float8 AS ends_in_s

-- name: read_usage
SELECT rows, bytes, documents, namespaces, counted_at, extract(epoch FROM now() - counted_at)::float8 AS age_s, took_s
FROM tenant_usage WHERE tenant = %(tenant)s

-- name: lock_count
SELECT pg_try_advisory_xact_lock(hashtextextended('lamina usage ' || %(tenant)s, 0)) AS is_ours

-- name: count_usage
WITH stored AS (
    SELECT count(*) AS rows, coalesce(sum(pg_column_size(content) + pg_column_size(metadata)), 0) AS bytes
    FROM messages WHERE tenant = %(tenant)s
    UNION ALL
    SELECT count(*), coalesce(sum(pg_column_size(content) + pg_column_size(metadata)), 0)
    FROM notes WHERE tenant = %(tenant)s
    UNION ALL
    SELECT count(*), coalesce(sum(pg_column_size(trigger) + pg_column_size(action) + pg_column_size(metadata)), 0)
    FROM procedures WHERE tenant = %(tenant)s
    UNION ALL
    SELECT count(*), coalesce(sum(pg_column_size(content)), 0) FROM passages WHERE tenant = %(tenant)s
    UNION ALL
    SELECT count(*), coalesce(sum(pg_column_size(content) + pg_column_size(metadata)), 0)
    FROM documents WHERE tenant = %(tenant)s
    UNION ALL
    SELECT count(*), 0 FROM entities WHERE tenant = %(tenant)s
    UNION ALL
    SELECT count(*), 0 FROM edges WHERE tenant = %(tenant)s
    UNION ALL
    SELECT count(*), coalesce(sum(pg_column_size(document)), 0) FROM profiles WHERE tenant = %(tenant)s
)
INSERT INTO tenant_usage AS u (tenant, rows, bytes, documents, namespaces, counted_at, took_s)
SELECT %(tenant)s, sum(rows), sum(bytes),
    (SELECT count(*) FROM documents WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM epochs WHERE tenant = %(tenant)s),
    now(), extract(epoch FROM clock_timestamp() - now())
FROM stored
ON CONFLICT (tenant) DO UPDATE
SET rows = excluded.rows, bytes = excluded.bytes, documents = excluded.documents, namespaces = excluded.namespaces,
    counted_at = excluded.counted_at, took_s = excluded.took_s
RETURNING rows, bytes, documents, namespaces, counted_at
