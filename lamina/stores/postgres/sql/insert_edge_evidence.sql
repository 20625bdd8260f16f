INSERT INTO edge_evidence (edge_id, source, memory_id, user_id, confidence, seen_at)
VALUES (%(edge_id)s, %(source)s, %(memory_id)s, %(owner)s, %(confidence)s, %(seen_at)s)
ON CONFLICT DO NOTHING
