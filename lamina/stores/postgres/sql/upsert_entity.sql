-- A name seen again keeps its entity; a vague type gives way to a definite one. The subquery sees what was there before
-- the statement: nothing, of an entity that is new or that another writer made meanwhile.
INSERT INTO entities AS e (
    id, tenant, workspace, namespace, key, name, type, aliases, confidence, is_asserted, generation, embedding,
    first_seen_at, last_seen_at
) VALUES (
    %(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(key)s, %(name)s, %(type)s, %(aliases)s, %(confidence)s,
    %(is_asserted)s, %(generation)s, %(embedding)s, %(seen_at)s, %(seen_at)s
)
ON CONFLICT (tenant, workspace, namespace, sha256_of(key)) DO UPDATE
SET type = CASE WHEN e.type = 'thing' OR excluded.is_asserted THEN excluded.type ELSE e.type END,
    aliases = ARRAY(SELECT DISTINCT unnest(e.aliases || excluded.aliases) ORDER BY 1),
    confidence = CASE WHEN excluded.is_asserted THEN excluded.confidence ELSE e.confidence END,
    is_asserted = e.is_asserted OR excluded.is_asserted,
    first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(e.last_seen_at, excluded.last_seen_at),
    standing = 1
RETURNING id, id = %(id)s AS is_new,
          first_seen_at IS DISTINCT FROM (SELECT o.first_seen_at FROM entities o WHERE o.id = e.id) AS is_earlier
