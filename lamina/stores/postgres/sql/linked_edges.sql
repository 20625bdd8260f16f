-- These edges (from, to, type) that time has left anything of, as far as the query may see what they rest on. An edge
-- is over with the last note that it rests on.
SELECT e.id, e.from_id, e.to_id, e.type, e.strength * e.standing AS strength, e.confidence, e.first_seen_at,
       e.last_seen_at, s.name AS subject, o.name AS object, nullif(told.until, 'infinity') AS expires_at
FROM unnest(%(from_ids)s::uuid[], %(to_ids)s::uuid[], %(types)s::text[]) AS wanted (from_id, to_id, type)
JOIN edges e ON e.from_id = wanted.from_id AND e.to_id = wanted.to_id AND e.type = wanted.type
JOIN entities s ON s.id = e.from_id
JOIN entities o ON o.id = e.to_id
CROSS JOIN LATERAL (
    SELECT max(coalesce(n.expires_at, 'infinity')) AS until
    FROM edge_evidence v
    LEFT JOIN notes n ON n.id = v.memory_id
    WHERE v.edge_id = e.id
      AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
      AND (%(user_id)s::text IS NULL OR v.user_id IS NULL OR v.user_id = %(user_id)s)
      AND (NOT %(shared_only)s OR v.user_id IS NULL)
) told
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND e.strength * e.standing >= %(least_strength)s
  AND told.until IS NOT NULL
  AND /*filters*/ true
ORDER BY e.id
