-- A source counts once, as sure as it was first; what it says again can only make the edge stronger.
INSERT INTO edge_evidence AS v (edge_id, source, memory_id, user_id, strength, confidence, seen_at)
VALUES (%(edge_id)s, %(source)s, %(memory_id)s, %(owner)s, %(strength)s, %(confidence)s, %(seen_at)s)
ON CONFLICT (edge_id, sha256_of(source), memory_id, user_id) DO UPDATE
SET strength = excluded.strength
WHERE v.strength < excluded.strength
