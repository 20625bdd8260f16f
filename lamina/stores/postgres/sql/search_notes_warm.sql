-- Literal recall: every word of the query, by cover density, each note at its best chunk.
SELECT * FROM (
    SELECT DISTINCT ON (n.id)
           n.id, n.user_id, n.agent_id, n.session_id, n.category, n.content, n.importance, n.confidence, n.tags,
           n.metadata, n.source, n.event_at, n.last_hit_at, n.temperature, n.expires_at, c.chunk, c.text_start,
           c.text_end,
           ts_rank_cd(c.tsv, asked)::float8 AS ts_rank_cd
    FROM plainto_tsquery('lamina', %(words)s) AS asked
    JOIN note_chunks c ON c.tsv @@ asked
    JOIN notes n ON n.id = c.note_id
    WHERE c.tenant = %(tenant)s AND c.workspace = %(workspace)s AND c.namespace = %(namespace)s
      AND c.generation = %(generation)s
      AND n.deleted_at IS NULL AND n.temperature = 'warm'
      AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
      AND n.weight >= %(min_weight)s
      AND (%(user_id)s::text IS NULL OR n.user_id IS NULL OR n.user_id = %(user_id)s)
      AND /*filters*/ true
    ORDER BY n.id, ts_rank_cd DESC, c.chunk
) best
ORDER BY ts_rank_cd DESC, id
LIMIT %(limit)s
