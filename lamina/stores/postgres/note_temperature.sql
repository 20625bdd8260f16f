-- name: count_hits
-- Rows are locked by id, so that two replicas cannot deadlock.
WITH counted AS (
    SELECT n.id, n.hits, n.last_hit_at, c.hits AS more, c.last_at
    FROM unnest(%(ids)s::uuid[], %(hits)s::bigint[], %(last)s::timestamptz[]) AS c (id, hits, last_at)
    JOIN notes n ON n.id = c.id
    WHERE n.deleted_at IS NULL
    ORDER BY n.id
    FOR UPDATE OF n
)
UPDATE notes n
SET hits = n.hits + counted.more, last_hit_at = greatest(n.last_hit_at, counted.last_at), weight = 1
FROM counted
WHERE n.id = counted.id
RETURNING n.id, n.temperature, counted.hits AS hits_before, counted.last_hit_at AS last_hit_before

-- name: lock_cold_chunks
SELECT n.id, c.generation, c.chunk, substr(n.content, c.text_start + 1, c.text_end - c.text_start) AS text
FROM notes n
JOIN note_chunks c ON c.note_id = n.id
WHERE n.id = ANY(%(ids)s) AND n.temperature = 'cold' AND n.deleted_at IS NULL
ORDER BY n.id, c.chunk
FOR UPDATE OF n

-- name: restore_words
UPDATE note_chunks c SET tsv = to_tsvector('lamina', w.words)
FROM unnest(%(ids)s::uuid[], %(generations)s::smallint[], %(chunks)s::integer[], %(words)s::text[])
     AS w (id, generation, chunk, words)
WHERE c.note_id = w.id AND c.generation = w.generation AND c.chunk = w.chunk

-- name: promote_notes
UPDATE notes
SET temperature = 'warm', temperature_changed_at = %(now)s, last_hit_at = greatest(last_hit_at, %(now)s), weight = 1
WHERE id = ANY(%(ids)s) AND temperature = 'cold' AND deleted_at IS NULL
RETURNING id, tenant, workspace, namespace, user_id

-- name: read_chunk_texts
SELECT n.id, c.generation, c.chunk, substr(n.content, c.text_start + 1, c.text_end - c.text_start) AS text
FROM notes n
JOIN note_chunks c ON c.note_id = n.id
WHERE n.id = ANY(%(ids)s)
ORDER BY n.id, c.chunk

-- name: blank_words
-- A cold note's chunks have no words.
UPDATE note_chunks SET tsv = NULL WHERE note_id = ANY(%(ids)s)
