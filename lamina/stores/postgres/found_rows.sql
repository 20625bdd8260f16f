-- name: with_later
-- Rows of hits; of messages and notes, the facts that took the place of those that they state, and the memories that
-- state these; and the votes on each. No private evidence ends what others may see (decide_validities), so none shows here.
SELECT found.*, f.useful, f.wrong, told.later, told.replaced_by
FROM (/*rows*/) AS found (/*columns*/)
LEFT JOIN feedback f ON f.memory_id = found.id AND f.tenant = %(voting_tenant)s
LEFT JOIN LATERAL (
    SELECT array_agg(DISTINCT s.name || ' ' || r.type || ' ' || o.name
                              || to_char(e.valid_to AT TIME ZONE 'UTC', '" (since "YYYY-MM-DD")"')) AS later,
           array_remove(array_agg(DISTINCT w.memory_id), NULL) AS replaced_by
    FROM edge_evidence v
    JOIN edges e ON e.id = v.edge_id AND e.valid_to <= coalesce(%(moment)s::timestamptz, now())
        AND NOT e.held_before @> coalesce(%(moment)s::timestamptz, now())
    JOIN edges r ON r.id = e.replaced_by
    JOIN entities s ON s.id = r.from_id
    JOIN entities o ON o.id = r.to_id
    LEFT JOIN edge_evidence w ON w.edge_id = r.id AND w.seen_at >= e.valid_to
    WHERE v.memory_id = found.id AND v.seen_at < e.valid_to
    HAVING count(*) > 0
) AS told ON found.tier IN (1, 2)
