-- Independent sources add up to certainty, 1 - (1 - a)(1 - b)…; the same source counts once. An edge has one strength
-- and one confidence for all its readers: they come from its shared evidence alone where it has any, so that what one
-- user keeps to himself changes nothing for the others; only an edge that is nobody's but some users' rests on theirs.
UPDATE edges e
SET strength = w.strength, confidence = least(0.99, w.confidence)
FROM (
    SELECT edge_id, max(strength) AS strength, 1 - exp(sum(ln(greatest(1 - confidence, 0.01)))) AS confidence
    FROM (
        SELECT v.edge_id, max(v.strength) AS strength, max(v.confidence) AS confidence
        FROM edge_evidence v
        WHERE v.edge_id = ANY(%(ids)s)
          AND (v.user_id IS NULL
               OR NOT EXISTS (SELECT FROM edge_evidence o WHERE o.edge_id = v.edge_id AND o.user_id IS NULL))
        GROUP BY v.edge_id, v.source
    ) sources
    GROUP BY edge_id
) w
WHERE e.id = w.edge_id
