SELECT projection,
       count(*) AS pending,
       extract(epoch FROM clock_timestamp() - min(created_at))::float8 AS oldest_s
FROM outbox
GROUP BY projection
ORDER BY projection
