-- These notes, warm or cold, each at its chunk nearest to the query.
SELECT DISTINCT ON (n.id)
       n.id, n.user_id, n.agent_id, n.session_id, n.category, n.content, n.importance, n.confidence, n.tags,
       n.metadata, n.source, n.event_at, n.last_hit_at, n.temperature, n.expires_at, c.chunk, c.text_start,
       c.text_end, coalesce(1 - (c.embedding <=> %(embedding)s::vector), 0)::float8 AS cosine
FROM notes n
JOIN note_chunks c ON c.note_id = n.id AND c.generation = %(generation)s
WHERE n.id = ANY(%(ids)s) AND n.deleted_at IS NULL
  AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
  AND n.weight >= %(min_weight)s
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR n.user_id IS NULL OR n.user_id = %(user_id)s)
  AND /*filters*/ true
ORDER BY n.id, cosine DESC, c.chunk
