-- For each new text the nearest warm notes of exactly this scope, as far as they are one chunk as a whole. Whether the
-- planner walks the index of vectors or reads all notes of the user depends on how many these are; so each condition
-- stands once, and what it cannot estimate stands outside.
SELECT asked.item, near.id, near.content, near.importance, near.source, near.tags, near.metadata, near.expires_at,
       near.cosine
FROM unnest(%(items)s::uuid[], %(embeddings)s::vector[]) AS asked (item, embedding)
CROSS JOIN LATERAL (
    SELECT n.id, n.content, n.importance, n.source, n.tags, n.metadata, n.expires_at, c.text_start, c.text_end,
           1 - (c.embedding <=> asked.embedding) AS cosine
    FROM note_chunks c
    JOIN notes n ON n.id = c.note_id
    WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
      AND (n.user_id = %(user_id)s OR (%(user_id)s::text IS NULL AND n.user_id IS NULL))
      AND n.deleted_at IS NULL
      AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
      AND c.generation = %(generation)s AND c.tsv IS NOT NULL
    ORDER BY c.embedding <=> asked.embedding
    LIMIT %(candidates)s
) near
WHERE near.cosine >= %(min_cosine)s AND near.text_start = 0 AND near.text_end = length(near.content)
ORDER BY asked.item, near.cosine DESC, near.id
