-- name: idle_notes
-- Warm notes that were idle for the shortest lifespan (of one hit), and notes that expired by themselves or by the
-- retention of their workspace.
SELECT id, temperature, hits, last_hit_at, least(expires_at, event_at + kept.time) AS expires_at
FROM notes
LEFT JOIN LATERAL (
    SELECT make_interval(secs => 86400 * (settings ->> 'retention_days')::float8) AS time
    FROM workspace_settings s WHERE s.tenant = notes.tenant AND s.workspace = notes.workspace
) kept ON true
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND ((temperature = 'warm' AND last_hit_at <= %(moment)s::timestamptz - %(idle)s::interval
        AND NOT EXISTS (SELECT FROM feedback f
                        WHERE f.tenant = %(tenant)s AND f.memory_id = notes.id AND f.pinned_at IS NOT NULL))
       OR expires_at <= %(moment)s
       OR event_at <= %(moment)s::timestamptz - kept.time)
  AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s

-- name: fading_notes
-- Notes whose weight may differ from the one for their whole idle days; pinned ones never fade. After 23 days no vote
-- gives any weight back: two weeks, and 1 / 0.12 days.
SELECT id, last_hit_at, weight, coalesce(f.useful, 0) AS useful, coalesce(f.wrong, 0) AS wrong
FROM notes
-- A limit of one has each looked up by its id: the table has no index by which to read those of one tenant.
LEFT JOIN LATERAL (
    SELECT useful, wrong, pinned_at FROM feedback WHERE memory_id = notes.id AND tenant = notes.tenant LIMIT 1
) f ON true
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND f.pinned_at IS NULL
  AND CASE WHEN last_hit_at <= %(moment)s::timestamptz - interval '8 days'
                  OR f.wrong > f.useful AND last_hit_at <= %(moment)s::timestamptz - interval '1 day'
           THEN weight > 0 OR last_hit_at > %(moment)s::timestamptz - interval '23 days' ELSE weight < 1 END
  AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s

-- name: fading_entities
-- Entities with the number of sources that mention them; asserted ones do not fade.
SELECT e.id, e.standing, e.last_seen_at,
       (SELECT count(DISTINCT sha256_of(l.source)) FROM memory_links l
        WHERE l.to_id = e.id AND l.kind IN ('about', 'mentions')) AS sources
FROM entities e
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND NOT e.is_asserted
  AND (e.standing < 1 OR e.last_seen_at <= %(moment)s::timestamptz - interval '7 days')
  AND (%(after)s::uuid IS NULL OR e.id > %(after)s)
ORDER BY e.id
LIMIT %(limit)s

-- name: fading_edges
SELECT id, standing, last_seen_at
FROM edges
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND (standing < 1 OR last_seen_at <= %(moment)s::timestamptz - interval '1 day')
  AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s
