-- Once for each source that did not mention the entity before: one source repeated is no new evidence.
UPDATE entities e
SET confidence = least(0.99, e.confidence + 0.1 * (1 - e.confidence)), standing = 1,
    last_seen_at = greatest(e.last_seen_at, n.seen_at)
FROM (
    SELECT entity_id, max(seen_at) AS seen_at
    FROM unnest(%(entity_ids)s::uuid[], %(memory_ids)s::uuid[], %(sources)s::text[], %(times)s::timestamptz[])
         AS told (entity_id, memory_id, source, seen_at)
    WHERE NOT EXISTS (
        SELECT FROM memory_links l
        WHERE l.to_id = told.entity_id AND sha256_of(l.source) = sha256_of(told.source)
          AND NOT l.from_id = ANY(%(memory_ids)s::uuid[])
    )
    GROUP BY entity_id
    ORDER BY entity_id
) n
WHERE e.id = n.entity_id
