-- Told again, a note stays as long as the later one would have; nobody waits for a row that stays as it is.
UPDATE notes n SET expires_at = told.expires_at
FROM (
    SELECT id, nullif(max(coalesce(expires_at, 'infinity')), 'infinity') AS expires_at
    FROM unnest(%(ids)s::uuid[], %(expiries)s::timestamptz[]) AS given (id, expires_at)
    GROUP BY id
) told
WHERE n.id = told.id AND n.deleted_at IS NULL AND n.expires_at < coalesce(told.expires_at, 'infinity')
