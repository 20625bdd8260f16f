-- Where a slice of a scope's notes ends, from a day on: behind the day of the note that fills it.
SELECT date_trunc('day', max(event_at), 'UTC') + interval '1 day' AS until, count(*) AS notes
FROM (
    SELECT event_at FROM notes
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
      AND event_at < %(before)s AND (%(since)s::timestamptz IS NULL OR event_at >= %(since)s)
    ORDER BY event_at
    LIMIT %(limit)s
) slice
