-- Independent sources add up to certainty, 1 - (1 - a)(1 - b)…; the same source counts once.
UPDATE edges e
SET confidence = least(0.99, w.confidence)
FROM (
    SELECT edge_id, 1 - exp(sum(ln(greatest(1 - confidence, 0.01)))) AS confidence
    FROM (
        SELECT edge_id, source, max(confidence) AS confidence
        FROM edge_evidence WHERE edge_id = ANY(%(ids)s) GROUP BY edge_id, source
    ) sources
    GROUP BY edge_id
) w
WHERE e.id = w.edge_id
