-- name: unembedded_messages
-- Messages of a namespace that lack vectors of a generation, in the order of their ids. Those that a summary stands for
-- have theirs in a table of their own.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
SELECT m.id, m.content_hash AS guard, m.role, m.name, m.content
FROM messages m
WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
  AND (%(after)s::uuid IS NULL OR m.id > %(after)s)
  AND CASE WHEN m.compacted_at IS NULL
      THEN NOT EXISTS (SELECT FROM message_chunks c WHERE c.message_id = m.id AND c.generation = %(generation)s OFFSET 0)
      ELSE NOT EXISTS (SELECT FROM compacted_chunks c WHERE c.message_id = m.id AND c.generation = %(generation)s OFFSET 0) END
ORDER BY m.id
LIMIT %(limit)s

-- name: unembedded_notes
-- Notes of a namespace, warm and cold, that lack vectors of a generation, in the order of their ids.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
SELECT n.id, n.content_hash AS guard, n.content
FROM notes n
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND (%(after)s::uuid IS NULL OR n.id > %(after)s)
  AND NOT EXISTS (SELECT FROM note_chunks c WHERE c.note_id = n.id AND c.generation = %(generation)s OFFSET 0)
ORDER BY n.id
LIMIT %(limit)s

-- name: unembedded_passages
-- Passages of a namespace that lack vectors of a generation, in the order of their ids.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
SELECT p.id, d.content_hash AS guard, d.title, p.heading, p.content
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
  AND (%(after)s::uuid IS NULL OR p.id > %(after)s)
  AND NOT EXISTS (SELECT FROM passage_chunks c WHERE c.passage_id = p.id AND c.generation = %(generation)s OFFSET 0)
ORDER BY p.id
LIMIT %(limit)s

-- name: unembedded_entities
-- Entities of a namespace that lack a vector of a generation, in the order of their ids.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
SELECT e.id, sha256_of(e.name) AS guard, e.name
FROM entities e
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND (%(after)s::uuid IS NULL OR e.id > %(after)s)
  AND e.generation IS DISTINCT FROM %(generation)s::smallint
  AND NOT EXISTS (SELECT FROM entity_embeddings o
                  WHERE o.entity_id = e.id AND o.generation = %(generation)s AND o.text_hash = sha256_of(e.name)
                  OFFSET 0)
ORDER BY e.id
LIMIT %(limit)s

-- name: unembedded_procedures
-- Procedures of a namespace that lack a vector of a generation, in the order of their ids.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
SELECT p.id, sha256_of(p.trigger) AS guard, p.trigger
FROM procedures p
WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s AND p.deleted_at IS NULL
  AND (%(after)s::uuid IS NULL OR p.id > %(after)s)
  AND p.generation IS DISTINCT FROM %(generation)s::smallint
  AND NOT EXISTS (SELECT FROM procedure_embeddings o
                  WHERE o.procedure_id = p.id AND o.generation = %(generation)s AND o.text_hash = sha256_of(p.trigger)
                  OFFSET 0)
ORDER BY p.id
LIMIT %(limit)s

-- name: embed_messages
-- Vectors of a generation for messages that are still there, where each belongs now.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(chunks)s::integer[], %(starts)s::integer[],
                         %(ends)s::integer[], %(embeddings)s::vector[])
           AS m (id, guard, chunk, text_start, text_end, embedding)
), locked AS (
    SELECT m.id, m.tenant, m.workspace, m.namespace, m.session_id, m.user_id, m.occurred_at, m.compacted_at
    FROM messages m
    WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
      AND m.id = ANY(%(ids)s) AND m.id IN (SELECT made.id FROM made WHERE made.guard = m.content_hash)
    ORDER BY m.id
    FOR SHARE
), placed AS (
    SELECT l.*, made.chunk, made.text_start, made.text_end, made.embedding FROM locked l JOIN made ON made.id = l.id
), astray AS (
    -- Left by a compaction, or the undo of one, that went on at the same time.
    DELETE FROM message_chunks c USING locked l
    WHERE c.message_id = l.id AND c.generation = %(generation)s AND l.compacted_at IS NOT NULL
), astray_too AS (
    DELETE FROM compacted_chunks c USING locked l
    WHERE c.message_id = l.id AND c.generation = %(generation)s AND l.compacted_at IS NULL
), live AS (
    INSERT INTO message_chunks (
        message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
        generation, embedding)
    SELECT id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
           %(generation)s, embedding
    FROM placed WHERE compacted_at IS NULL
    ON CONFLICT DO NOTHING
    RETURNING message_id
), compacted AS (
    INSERT INTO compacted_chunks (
        message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
        generation, embedding)
    SELECT id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end,
           %(generation)s, embedding
    FROM placed WHERE compacted_at IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING message_id
)
SELECT message_id AS id FROM live UNION SELECT message_id FROM compacted

-- name: embed_notes
-- Vectors of a generation for notes that still say the same; only a warm one's chunks have words.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(chunks)s::integer[], %(starts)s::integer[],
                         %(ends)s::integer[], %(embeddings)s::vector[], %(words)s::text[])
           AS m (id, guard, chunk, text_start, text_end, embedding, words)
), locked AS (
    SELECT n.id, n.tenant, n.workspace, n.namespace, n.temperature
    FROM notes n
    WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
      AND n.deleted_at IS NULL
      AND n.id = ANY(%(ids)s) AND n.id IN (SELECT made.id FROM made WHERE made.guard = n.content_hash)
    ORDER BY n.id
    FOR SHARE
), inserted AS (
    INSERT INTO note_chunks (
        note_id, chunk, tenant, workspace, namespace, text_start, text_end, tsv, generation, embedding)
    SELECT l.id, m.chunk, l.tenant, l.workspace, l.namespace, m.text_start, m.text_end,
           CASE WHEN l.temperature = 'warm' THEN to_tsvector('lamina', m.words) END, %(generation)s, m.embedding
    FROM locked l
    JOIN made m ON m.id = l.id
    ON CONFLICT DO NOTHING
    RETURNING note_id
)
SELECT DISTINCT note_id AS id FROM inserted

-- name: embed_passages
-- Vectors of a generation for passages that are still there.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(chunks)s::integer[], %(starts)s::integer[],
                         %(ends)s::integer[], %(embeddings)s::vector[], %(words)s::text[])
           AS m (id, guard, chunk, text_start, text_end, embedding, words)
), locked AS (
    SELECT p.id, p.tenant, p.workspace, p.namespace, p.user_id
    FROM passages p
    JOIN documents d ON d.id = p.document_id
    WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
      AND p.id = ANY(%(ids)s) AND p.id IN (SELECT made.id FROM made WHERE made.guard = d.content_hash)
    ORDER BY p.id
    FOR KEY SHARE OF p
), inserted AS (
    INSERT INTO passage_chunks (
        passage_id, chunk, text_start, text_end, tenant, workspace, namespace, user_id, tsv, generation, embedding)
    SELECT l.id, m.chunk, m.text_start, m.text_end, l.tenant, l.workspace, l.namespace, l.user_id,
           to_tsvector('lamina', m.words), %(generation)s, m.embedding
    FROM locked l
    JOIN made m ON m.id = l.id
    ON CONFLICT DO NOTHING
    RETURNING passage_id
)
SELECT DISTINCT passage_id AS id FROM inserted

-- name: embed_entities
-- Vectors of a generation for entities that still have the same name. One that was written with this generation's
-- model has its vector in its row.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(embeddings)s::vector[]) AS m (id, guard, embedding)
), locked AS (
    SELECT e.id, e.tenant, e.workspace, e.namespace
    FROM entities e
    WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
      AND e.generation <> %(generation)s
      AND e.id = ANY(%(ids)s) AND e.id IN (SELECT made.id FROM made WHERE made.guard = sha256_of(e.name))
    ORDER BY e.id
    FOR SHARE
)
INSERT INTO entity_embeddings (entity_id, generation, tenant, workspace, namespace, text_hash, embedding)
SELECT l.id, %(generation)s, l.tenant, l.workspace, l.namespace, m.guard, m.embedding
FROM locked l
JOIN made m ON m.id = l.id
ON CONFLICT (entity_id, generation) DO UPDATE SET text_hash = excluded.text_hash, embedding = excluded.embedding
RETURNING entity_id AS id

-- name: embed_procedures
-- Vectors of a generation for procedures that still have the same trigger. One that was written with this generation's
-- model has its vector in its row.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(embeddings)s::vector[]) AS m (id, guard, embedding)
), locked AS (
    SELECT p.id, p.tenant, p.workspace, p.namespace
    FROM procedures p
    WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
      AND p.deleted_at IS NULL AND p.generation <> %(generation)s
      AND p.id = ANY(%(ids)s) AND p.id IN (SELECT made.id FROM made WHERE made.guard = sha256_of(p.trigger))
    ORDER BY p.id
    FOR SHARE
)
INSERT INTO procedure_embeddings (procedure_id, generation, tenant, workspace, namespace, text_hash, embedding)
SELECT l.id, %(generation)s, l.tenant, l.workspace, l.namespace, m.guard, m.embedding
FROM locked l
JOIN made m ON m.id = l.id
ON CONFLICT (procedure_id, generation) DO UPDATE SET text_hash = excluded.text_hash, embedding = excluded.embedding
RETURNING procedure_id AS id

-- name: outdated_vectors
-- Whatever in a namespace still has vectors of some generations, in the order of their ids.
-- OFFSET 0: looked up row by row, not by a hash of all vectors that there are, which each page would build anew.
(SELECT m.id FROM messages m
 WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
   AND (%(after)s::uuid IS NULL OR m.id > %(after)s)
   AND (EXISTS (SELECT FROM message_chunks c WHERE c.message_id = m.id AND c.generation = ANY(%(generations)s) OFFSET 0)
        OR EXISTS (SELECT FROM compacted_chunks c WHERE c.message_id = m.id AND c.generation = ANY(%(generations)s) OFFSET 0))
 ORDER BY m.id LIMIT %(limit)s)
UNION ALL
(SELECT n.id FROM notes n
 WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
   AND (%(after)s::uuid IS NULL OR n.id > %(after)s)
   AND EXISTS (SELECT FROM note_chunks c WHERE c.note_id = n.id AND c.generation = ANY(%(generations)s) OFFSET 0)
 ORDER BY n.id LIMIT %(limit)s)
UNION ALL
(SELECT p.id FROM passages p
 WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
   AND (%(after)s::uuid IS NULL OR p.id > %(after)s)
   AND EXISTS (SELECT FROM passage_chunks c WHERE c.passage_id = p.id AND c.generation = ANY(%(generations)s) OFFSET 0)
 ORDER BY p.id LIMIT %(limit)s)
UNION ALL
(SELECT e.id FROM entities e
 WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
   AND (%(after)s::uuid IS NULL OR e.id > %(after)s)
   AND EXISTS (SELECT FROM entity_embeddings o WHERE o.entity_id = e.id AND o.generation = ANY(%(generations)s) OFFSET 0)
 ORDER BY e.id LIMIT %(limit)s)
UNION ALL
(SELECT p.id FROM procedures p
 WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s AND p.deleted_at IS NULL
   AND (%(after)s::uuid IS NULL OR p.id > %(after)s)
   AND EXISTS (SELECT FROM procedure_embeddings o WHERE o.procedure_id = p.id AND o.generation = ANY(%(generations)s) OFFSET 0)
 ORDER BY p.id LIMIT %(limit)s)
ORDER BY id
LIMIT %(limit)s

-- name: delete_outdated_vectors
-- The vectors that these memories, entities and procedures have of generations that nobody reads any more.
WITH retired AS (
    SELECT generation FROM embedding_generations WHERE generation = ANY(%(generations)s) AND state = 'retired'
), messages_gone AS (
    DELETE FROM message_chunks c USING retired
    WHERE c.message_id = ANY(%(ids)s) AND c.generation = retired.generation AND c.tenant = %(tenant)s
    RETURNING c.message_id AS id
), compacted_gone AS (
    DELETE FROM compacted_chunks c USING retired
    WHERE c.message_id = ANY(%(ids)s) AND c.generation = retired.generation AND c.tenant = %(tenant)s
    RETURNING c.message_id
), notes_gone AS (
    DELETE FROM note_chunks c USING retired
    WHERE c.note_id = ANY(%(ids)s) AND c.generation = retired.generation AND c.tenant = %(tenant)s
    RETURNING c.note_id
), passages_gone AS (
    DELETE FROM passage_chunks c USING retired
    WHERE c.passage_id = ANY(%(ids)s) AND c.generation = retired.generation AND c.tenant = %(tenant)s
    RETURNING c.passage_id
), entities_gone AS (
    DELETE FROM entity_embeddings o USING retired
    WHERE o.entity_id = ANY(%(ids)s) AND o.generation = retired.generation AND o.tenant = %(tenant)s
    RETURNING o.entity_id
), procedures_gone AS (
    DELETE FROM procedure_embeddings o USING retired
    WHERE o.procedure_id = ANY(%(ids)s) AND o.generation = retired.generation AND o.tenant = %(tenant)s
    RETURNING o.procedure_id
)
SELECT id FROM messages_gone UNION SELECT message_id FROM compacted_gone UNION SELECT note_id FROM notes_gone
UNION SELECT passage_id FROM passages_gone UNION SELECT entity_id FROM entities_gone
UNION SELECT procedure_id FROM procedures_gone

-- name: drop_building_vectors
-- All vectors that an area has of a generation that is still being built.
WITH building AS (
    SELECT generation FROM embedding_generations WHERE generation = %(generation)s AND state = 'building'
), messages_gone AS (
    DELETE FROM message_chunks c USING building
    WHERE c.generation = building.generation AND (%(tenant)s::text IS NULL OR c.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR c.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR c.namespace = %(namespace)s)
    RETURNING c.message_id AS id
), compacted_gone AS (
    DELETE FROM compacted_chunks c USING building
    WHERE c.generation = building.generation AND (%(tenant)s::text IS NULL OR c.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR c.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR c.namespace = %(namespace)s)
    RETURNING c.message_id
), notes_gone AS (
    DELETE FROM note_chunks c USING building
    WHERE c.generation = building.generation AND (%(tenant)s::text IS NULL OR c.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR c.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR c.namespace = %(namespace)s)
    RETURNING c.note_id
), passages_gone AS (
    DELETE FROM passage_chunks c USING building
    WHERE c.generation = building.generation AND (%(tenant)s::text IS NULL OR c.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR c.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR c.namespace = %(namespace)s)
    RETURNING c.passage_id
), entities_gone AS (
    DELETE FROM entity_embeddings o USING building
    WHERE o.generation = building.generation AND (%(tenant)s::text IS NULL OR o.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR o.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR o.namespace = %(namespace)s)
    RETURNING o.entity_id
), procedures_gone AS (
    DELETE FROM procedure_embeddings o USING building
    WHERE o.generation = building.generation AND (%(tenant)s::text IS NULL OR o.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR o.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR o.namespace = %(namespace)s)
    RETURNING o.procedure_id
)
SELECT count(*) AS rows FROM (
    SELECT id FROM messages_gone UNION SELECT message_id FROM compacted_gone UNION SELECT note_id FROM notes_gone
    UNION SELECT passage_id FROM passages_gone UNION SELECT entity_id FROM entities_gone
    UNION SELECT procedure_id FROM procedures_gone
) gone
