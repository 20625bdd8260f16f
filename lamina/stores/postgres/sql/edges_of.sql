-- The edges at these entities that time has left anything of, as far as the query may see what they rest on, the
-- surest first; those that only notes tell of that expire are left out.
SELECT e.id, e.from_id, e.to_id, e.type, e.strength * e.standing AS strength, e.confidence, e.first_seen_at,
       e.last_seen_at, s.name AS subject, o.name AS object, NULL::timestamptz AS expires_at
FROM edges e
JOIN entities s ON s.id = e.from_id
JOIN entities o ON o.id = e.to_id
WHERE (e.from_id = ANY(%(ids)s) OR e.to_id = ANY(%(ids)s))
  AND e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND e.strength * e.standing >= %(least_strength)s
  AND EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id
              AND (%(user_id)s::text IS NULL OR v.user_id IS NULL OR v.user_id = %(user_id)s)
              AND (NOT %(shared_only)s OR v.user_id IS NULL)
              AND NOT EXISTS (SELECT FROM notes n WHERE n.id = v.memory_id AND n.expires_at IS NOT NULL))
  AND /*filters*/ true
ORDER BY e.strength * e.standing * e.confidence DESC, e.id
LIMIT %(limit)s
