-- name: read_stale_names
SELECT s.id, e.tenant, e.workspace, e.namespace, e.key, e.name, e.aliases
FROM stale_words s
LEFT JOIN entities e ON e.id = s.id
WHERE s.relation = 'entities'
ORDER BY s.id
LIMIT %(limit)s

-- name: rekey_entity
-- Where another entity has the key already, both stay, and the name leads to both.
UPDATE entities e SET key = %(key)s
WHERE e.id = %(id)s AND e.key <> %(key)s
  AND NOT EXISTS (
      SELECT FROM entities o
      WHERE o.tenant = e.tenant AND o.workspace = e.workspace AND o.namespace = e.namespace
        AND sha256_of(o.key) = sha256_of(%(key)s))

-- name: add_entity_names
-- Beside the earlier keys, by which replicas of an earlier release look names up.
INSERT INTO entity_names (tenant, workspace, namespace, key, entity_id)
SELECT e.tenant, e.workspace, e.namespace, wanted.key, e.id
FROM entities e CROSS JOIN unnest(%(keys)s::text[]) AS wanted (key)
WHERE e.id = %(id)s
ON CONFLICT DO NOTHING

-- name: find_stale_words
SELECT relation, id FROM stale_words WHERE relation <> 'entities' ORDER BY relation, id LIMIT %(limit)s

-- name: finish_stale_words
DELETE FROM stale_words WHERE relation = %(relation)s AND id = ANY(%(ids)s)

-- name: lock_stale_notes
SELECT n.id, n.tenant, c.generation, c.chunk, n.content AS text, c.text_start, c.text_end
FROM notes n
JOIN note_chunks c ON c.note_id = n.id
WHERE n.id = ANY(%(ids)s) AND c.tsv IS NOT NULL
ORDER BY n.id, c.generation, c.chunk
FOR UPDATE OF n

-- name: lock_stale_passages
SELECT p.id, p.tenant, c.generation, c.chunk, d.title, p.heading, p.content, c.text_start, c.text_end
FROM passages p
JOIN documents d ON d.id = p.document_id
JOIN passage_chunks c ON c.passage_id = p.id
WHERE p.id = ANY(%(ids)s)
ORDER BY p.id, c.generation, c.chunk
FOR UPDATE OF p

-- name: lock_stale_procedures
SELECT id, tenant, generation, 0 AS chunk, trigger AS text, 0 AS text_start, length(trigger) AS text_end
FROM procedures
WHERE id = ANY(%(ids)s)
ORDER BY id
FOR UPDATE

-- name: write_notes_words
UPDATE note_chunks c SET tsv = to_tsvector('lamina', w.words)
FROM unnest(%(ids)s::uuid[], %(generations)s::smallint[], %(chunks)s::integer[], %(words)s::text[])
     AS w (id, generation, chunk, words)
WHERE c.note_id = w.id AND c.generation = w.generation AND c.chunk = w.chunk

-- name: write_passages_words
UPDATE passage_chunks c SET tsv = to_tsvector('lamina', w.words)
FROM unnest(%(ids)s::uuid[], %(generations)s::smallint[], %(chunks)s::integer[], %(words)s::text[])
     AS w (id, generation, chunk, words)
WHERE c.passage_id = w.id AND c.generation = w.generation AND c.chunk = w.chunk

-- name: write_procedures_words
UPDATE procedures p SET tsv = to_tsvector('lamina', w.words), trigger_key = w.key
FROM unnest(%(ids)s::uuid[], %(words)s::text[], %(keys)s::text[]) AS w (id, words, key)
WHERE p.id = w.id
