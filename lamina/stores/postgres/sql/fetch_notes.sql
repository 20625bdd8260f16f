SELECT n.id, n.user_id, n.agent_id, n.session_id, n.category, n.content, n.importance, n.confidence, n.tags,
       n.metadata, n.source, n.event_at, n.last_hit_at, n.temperature, n.expires_at, c.chunk, c.text_start,
       c.text_end
FROM unnest(%(ids)s::uuid[], %(chunks)s::integer[]) AS wanted (id, chunk)
JOIN notes n ON n.id = wanted.id
JOIN note_chunks c ON c.note_id = n.id AND c.chunk = wanted.chunk AND c.generation = %(generation)s
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
  AND n.weight >= %(min_weight)s
  AND (%(user_id)s::text IS NULL OR n.user_id IS NULL OR n.user_id = %(user_id)s)
  AND /*filters*/ true
