-- name: nearest_notes
-- For each new text, the nearest warm notes of exactly this scope that have one chunk. The planner walks the index
-- of vectors or reads all notes of the user, depending on how many these are; so each condition stands once, and
-- conditions that it cannot estimate stand outside.
SELECT asked.item, near.id, near.content, near.importance, near.source, near.tags, near.metadata, near.expires_at,
       near.speakers, near.cosine
FROM unnest(%(items)s::uuid[], %(embeddings)b::vector[]) AS asked (item, embedding)
CROSS JOIN LATERAL (
    SELECT n.id, n.content, n.importance, n.source, n.tags, n.metadata, n.expires_at, n.speakers, c.text_start,
           c.text_end, 1 - (c.embedding /*typed*/ <=> asked.embedding /*typed*/) AS cosine
    FROM note_chunks c
    JOIN notes n ON n.id = c.note_id
    WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
      AND (n.user_id = %(user_id)s OR (%(user_id)s::text IS NULL AND n.user_id IS NULL))
      AND n.deleted_at IS NULL
      AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
      AND c.generation = %(generation)s AND c.tsv IS NOT NULL
    ORDER BY c.embedding /*typed*/ <=> asked.embedding /*typed*/
    LIMIT %(candidates)s
) near
WHERE near.cosine >= %(min_cosine)s AND near.text_start = 0 AND near.text_end = length(near.content)
ORDER BY asked.item, near.cosine DESC, near.id

-- name: count_comparable_notes
-- Notes of exactly this scope, counted up to one more than the most.
SELECT count(*) AS notes
FROM (
    SELECT FROM notes n
    WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
      AND (n.user_id = %(user_id)s OR (%(user_id)s::text IS NULL AND n.user_id IS NULL))
      AND n.deleted_at IS NULL
    LIMIT %(most)s + 1
) counted

-- name: read_note_vectors
-- Of all of them that have one chunk.
SELECT n.id, c.embedding
FROM notes n
JOIN note_chunks c ON c.note_id = n.id AND c.generation = %(generation)s AND c.tsv IS NOT NULL
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND (n.user_id = %(user_id)s OR (%(user_id)s::text IS NULL AND n.user_id IS NULL))
  AND n.deleted_at IS NULL AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
  AND c.text_start = 0 AND c.text_end = length(n.content)
ORDER BY n.id

-- name: read_originals
SELECT id, content, importance, source, tags, metadata, expires_at, speakers FROM notes WHERE id = ANY(%(ids)s)

-- name: raise_importance
-- A repeated note counts as used now. Each witness raises its importance once; after that the note counts as stated.
UPDATE notes n
SET importance = greatest(
        n.importance,
        CASE WHEN %(witness)s::text = ANY(n.raised_by) OR cardinality(n.raised_by) >= %(most_witnesses)s
            THEN raised.stated ELSE raised.importance END),
    raised_by = CASE
        WHEN %(witness)s::text IS NULL OR %(witness)s::text = ANY(n.raised_by)
            OR cardinality(n.raised_by) >= %(most_witnesses)s
        THEN n.raised_by ELSE n.raised_by || %(witness)s::text END,
    updated_at = %(now)s, last_hit_at = greatest(n.last_hit_at, %(now)s), weight = 1
FROM (
    SELECT id, importance, stated
    FROM unnest(%(ids)s::uuid[], %(importances)s::float8[], %(stated)s::float8[]) AS given (id, importance, stated)
) raised
WHERE n.id = raised.id AND n.deleted_at IS NULL
  AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
RETURNING n.id

-- name: find_page_end
-- The end of a page of a scope's notes, from the newest on.
SELECT created_at, id
FROM (
    SELECT created_at, id FROM notes
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND deleted_at IS NULL AND expires_at IS NULL
      AND (%(created_at)s::timestamptz IS NULL OR (created_at, id) < (%(created_at)s, %(id)s::uuid))
    ORDER BY created_at DESC, id DESC
    LIMIT %(limit)s
) page
ORDER BY created_at, id
LIMIT 1

-- name: merge_candidates
-- Notes of a page, and older ones that may be near to one of them. Without derived notes and those that expire, which
-- cannot stand for others, and pinned ones, which stay as they are.
SELECT id, user_id, speakers, content, created_at, hits, importance, confidence, last_hit_at, tags, version
FROM notes n
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND deleted_at IS NULL AND expires_at IS NULL
  AND (%(created_at)s::timestamptz IS NULL OR (created_at, id) < (%(created_at)s, %(id)s::uuid))
  AND created_at >= %(since)s
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)
  AND NOT EXISTS (SELECT FROM feedback f
                  WHERE f.tenant = %(tenant)s AND f.memory_id = n.id AND f.pinned_at IS NOT NULL)
ORDER BY created_at DESC, id DESC
LIMIT %(limit)s
