-- The rows of hits, for an answer: one statement that is made of a part for each tier and scope. Each part asks again for
-- all that the query may see, for a row may have changed since a source ranked it.

-- name: sessions
SELECT 1 AS tier, m.id, NULL::text AS kind, m.content, m.occurred_at, 1.0::float8 AS confidence,
       0.5::float8 AS importance, m.user_id, m.agent_id, m.session_id, m.name, m.ref, '{}'::text[] AS tags, m.metadata,
       m.role AS source, NULL::timestamptz AS last_hit_at, 'warm' AS temperature, NULL::text AS title,
       NULL::uuid AS document_id, NULL::integer AS position, NULL::timestamptz AS expires_at, NULL::text AS heading,
       NULL::integer AS page
FROM messages m
WHERE m.id = ANY(%(ids)s) AND m.compacted_at IS NULL
  AND m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
  AND (%(session_id)s::text IS NULL OR m.session_id = %(session_id)s)
  AND (%(user_id)s::text IS NULL OR m.user_id IS NULL OR m.user_id = %(user_id)s)
  AND /*filters*/ true

-- name: notes
SELECT 2, n.id, n.category, n.content, n.event_at, n.confidence, n.importance, n.user_id, n.agent_id, n.session_id,
       NULL, NULL, n.tags, n.metadata, n.source, n.last_hit_at, n.temperature, NULL, NULL::uuid, NULL::integer,
       n.expires_at, NULL, NULL::integer
FROM notes n
WHERE n.id = ANY(%(ids)s) AND n.deleted_at IS NULL
  AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
  AND n.weight >= %(min_weight)s
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR n.user_id IS NULL OR n.user_id = %(user_id)s)
  AND /*filters*/ true

-- name: procedures
SELECT 5, p.id, NULL, p.action, p.created_at, 1.0, p.strength, NULL, p.agent_id, NULL, p.trigger, NULL, p.tags,
       p.metadata, p.source, p.last_used_at, 'warm', NULL, NULL::uuid, NULL::integer, NULL::timestamptz, NULL,
       NULL::integer
FROM procedures p
WHERE p.id = ANY(%(ids)s) AND p.deleted_at IS NULL
  AND p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
  AND /*filters*/ true

-- name: documents
SELECT 6, p.id, NULL, p.content, d.event_at, 1.0, 0.5, d.user_id, d.agent_id, NULL, NULL, coalesce(d.sent_key, d.key),
       d.tags, d.metadata, d.source, NULL::timestamptz, 'warm', d.title, d.id, p.position, NULL::timestamptz, p.heading,
       p.page
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE p.id = ANY(%(ids)s)
  AND d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR d.user_id IS NULL OR d.user_id = %(user_id)s)
  AND /*filters*/ true
