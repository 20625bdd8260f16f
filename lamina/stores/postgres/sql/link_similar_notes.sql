-- Each new note to the nearest others that its readers may see, all in one round trip.
INSERT INTO memory_links (
    from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
)
SELECT n.id, near.id, 'similar', 2, n.tenant, n.workspace, n.namespace, n.user_id, n.source, least(1, near.cosine),
       n.event_at
FROM notes n
JOIN note_chunks own ON own.note_id = n.id AND own.generation = %(generation)s AND own.chunk = 0
CROSS JOIN LATERAL (
    SELECT other.id, max(1 - found.distance) AS cosine
    FROM (
        SELECT c.note_id, c.embedding <=> own.embedding AS distance
        FROM note_chunks c
        WHERE c.tenant = n.tenant AND c.workspace = n.workspace AND c.namespace = n.namespace
          AND c.generation = %(generation)s AND c.tsv IS NOT NULL
        ORDER BY c.embedding <=> own.embedding
        LIMIT 4 * %(fan_out)s
    ) found
    JOIN notes other ON other.id = found.note_id AND other.id <> n.id AND other.deleted_at IS NULL
                    AND (other.expires_at IS NULL OR other.expires_at > statement_timestamp())
                    AND (other.user_id IS NULL OR other.user_id = n.user_id)
    GROUP BY other.id
    ORDER BY 2 DESC, 1
    LIMIT %(fan_out)s
) near
WHERE n.id = ANY(%(ids)s) AND near.cosine >= %(min_similarity)s
ON CONFLICT DO NOTHING
