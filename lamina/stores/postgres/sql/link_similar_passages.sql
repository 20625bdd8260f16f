-- Each new passage to the nearest others that its readers may see, all in one round trip.
INSERT INTO memory_links (
    from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
)
SELECT p.id, near.id, 'similar', 6, p.tenant, p.workspace, p.namespace, p.user_id, d.source, least(1, near.cosine),
       d.event_at
FROM passages p
JOIN documents d ON d.id = p.document_id
JOIN passage_chunks own ON own.passage_id = p.id AND own.generation = %(generation)s AND own.chunk = 0
CROSS JOIN LATERAL (
    SELECT other.id, max(1 - found.distance) AS cosine
    FROM (
        SELECT c.passage_id, c.embedding <=> own.embedding AS distance
        FROM passage_chunks c
        WHERE c.tenant = p.tenant AND c.workspace = p.workspace AND c.namespace = p.namespace
          AND c.generation = %(generation)s
        ORDER BY c.embedding <=> own.embedding
        LIMIT 4 * %(fan_out)s
    ) found
    JOIN passages other ON other.id = found.passage_id AND other.id <> p.id
                       AND (other.user_id IS NULL OR other.user_id = p.user_id)
    GROUP BY other.id
    ORDER BY 2 DESC, 1
    LIMIT %(fan_out)s
) near
WHERE p.id = ANY(%(ids)s) AND near.cosine >= %(min_similarity)s
ON CONFLICT DO NOTHING
