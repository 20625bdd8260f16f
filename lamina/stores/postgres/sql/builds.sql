SELECT s.projection, s.build, s.ordered_at, count(o.seq) AS pending
FROM projection_stores s
LEFT JOIN outbox o ON o.projection = s.projection AND o.seq <= s.building_until
WHERE s.building_until IS NOT NULL
GROUP BY s.projection, s.build, s.ordered_at
ORDER BY s.projection
