-- fragment: columns
d.id, d.workspace, d.namespace, d.user_id, d.agent_id, coalesce(d.path, d.sent_key, d.key) AS key, d.title, d.media_type,
d.characters, d.tags, d.metadata, d.source, d.importance, d.version, d.event_at, d.created_at, d.updated_at

-- fragment: visible
d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
AND (%(user_id)s::text IS NULL OR d.user_id IS NULL OR d.user_id = %(user_id)s)

-- name: find_documents
SELECT d.id, d.key, d.content_hash, d.version,
       (SELECT count(*) FROM passages p WHERE p.document_id = d.id) AS passages
FROM documents d
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND d.user_id IS NOT DISTINCT FROM %(user_id)s AND d.key = ANY(%(keys)s)

-- name: put_documents
-- Each of another key, in the given order, in which rows are locked. A document of the same key is replaced as a whole;
-- an equal one, or one of an agent that is not among those given, stays as it is and returns no row. Tags come as JSON,
-- for an array of arrays would have to be square.
INSERT INTO documents (
    id, tenant, workspace, namespace, user_id, agent_id, key, sent_key, title, media_type, content, content_hash,
    characters, tags, metadata, source, event_at, created_at, updated_at, path, text_hash, is_always, mirror, importance
)
SELECT t.id, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s, %(agent_id)s, t.key, t.sent_key, t.title,
       t.media_type, t.content, t.content_hash, t.characters, ARRAY(SELECT jsonb_array_elements_text(t.tags)),
       t.metadata, t.source, t.event_at, %(now)s, %(now)s, t.path, t.text_hash, t.is_always, t.mirror, t.importance
FROM unnest(%(ids)s::uuid[], %(keys)s::text[], %(sent_keys)s::text[], %(titles)s::text[], %(media_types)s::text[],
            %(contents)b::text[], %(hashes)s::bytea[], %(characters)s::int[], %(tags)s::jsonb[], %(metadata)b::json[],
            %(sources)b::text[], %(times)s::timestamptz[], %(paths)s::text[], %(text_hashes)s::bytea[],
            %(always)s::bool[], %(mirrors)s::text[], %(importances)s::float8[])
     WITH ORDINALITY AS t (id, key, sent_key, title, media_type, content, content_hash, characters, tags, metadata,
                           source, event_at, path, text_hash, is_always, mirror, importance, place)
ORDER BY t.place
ON CONFLICT (tenant, workspace, namespace, user_id, key) DO UPDATE
SET agent_id = excluded.agent_id, sent_key = excluded.sent_key, title = excluded.title,
    media_type = excluded.media_type,
    content = excluded.content, content_hash = excluded.content_hash, characters = excluded.characters,
    tags = excluded.tags, metadata = excluded.metadata, source = excluded.source, event_at = excluded.event_at,
    version = documents.version + 1, updated_at = excluded.updated_at, text_hash = excluded.text_hash,
    is_always = excluded.is_always, mirror = excluded.mirror, importance = excluded.importance
WHERE documents.content_hash <> excluded.content_hash
  AND (cardinality(%(agents)s::text[]) = 0 OR documents.agent_id = ANY(%(agents)s::text[]))
RETURNING key, id, version

-- name: delete_passages
DELETE FROM passages WHERE document_id = ANY(%(ids)s)
RETURNING document_id, id

-- name: find_embedded_passages
-- The passages of documents whose text is one of these, chunk by chunk, with their vectors.
SELECT p.id, d.title, p.heading, p.content, c.text_start, c.text_end, c.embedding
FROM documents d
JOIN passages p ON p.document_id = d.id
JOIN passage_chunks c ON c.passage_id = p.id AND c.generation = %(generation)s
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND d.user_id IS NOT DISTINCT FROM %(user_id)s AND d.key = ANY(%(keys)s)
  AND sha256_of(p.content) = ANY(%(hashes)s)
ORDER BY p.id, c.chunk

-- name: insert_passages
-- Passages with their chunks.
WITH added AS (
    INSERT INTO passages (
        id, document_id, position, content, tenant, workspace, namespace, user_id, heading, page, text_start, text_end,
        line_start, line_end
    )
    SELECT t.id, t.document_id, t.position, t.content, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s,
           t.heading, t.page, t.text_start, t.text_end, t.line_start, t.line_end
    FROM unnest(%(ids)s::uuid[], %(document_ids)s::uuid[], %(positions)s::int[], %(contents)b::text[],
                %(headings)b::text[], %(pages)s::int[], %(text_starts)s::int[], %(text_ends)s::int[],
                %(line_starts)s::int[], %(line_ends)s::int[])
         AS t (id, document_id, position, content, heading, page, text_start, text_end, line_start, line_end)
)
INSERT INTO passage_chunks (
    passage_id, chunk, text_start, text_end, tenant, workspace, namespace, user_id, tsv, generation, embedding
)
SELECT c.id, c.chunk, c.text_start, c.text_end, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s,
       to_tsvector('lamina', c.words), %(generation)s, c.embedding
FROM unnest(%(chunk_ids)s::uuid[], %(chunks)s::int[], %(starts)s::int[], %(ends)s::int[], %(words)b::text[],
            %(embeddings)b::vector[])
     AS c (id, chunk, text_start, text_end, words, embedding)

-- name: lock_document
SELECT workspace, namespace, user_id, version FROM documents WHERE id = %(id)s AND tenant = %(tenant)s
FOR UPDATE

-- name: delete_document
DELETE FROM documents WHERE id = %(id)s AND tenant = %(tenant)s

-- name: get_document
SELECT /*columns*/,
       CASE WHEN %(with_content)s THEN d.content END AS content,
       (SELECT count(*) FROM passages p WHERE p.document_id = d.id) AS passages
FROM documents d
WHERE d.id = %(id)s AND d.tenant = %(tenant)s

-- name: list_documents
SELECT /*columns*/,
       NULL AS content, (SELECT count(*) FROM passages p WHERE p.document_id = d.id) AS passages
FROM documents d
WHERE /*visible*/
  AND (%(key)s::text IS NULL OR d.key = %(key)s)
  AND (d.event_at, d.id) < (coalesce(%(after_time)s::timestamptz, 'infinity'),
                       coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
  AND /*filters*/ true
ORDER BY d.event_at DESC, d.id DESC
LIMIT %(limit)s OFFSET %(offset)s

-- name: list_passages
SELECT p.id, p.position, p.content, p.text_start, p.text_end, p.heading, p.page
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE d.id = %(id)s AND d.tenant = %(tenant)s AND p.position > coalesce(%(after_position)s::int, -1)
ORDER BY p.position
LIMIT %(limit)s OFFSET %(offset)s

-- name: get_passage
SELECT p.id, p.position, p.content, p.text_start, p.text_end, p.heading, p.page
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE p.id = %(id)s AND d.tenant = %(tenant)s

-- name: fetch_documents
-- Places of an index that the query may see, with the text of the first of them.
SELECT p.id, d.event_at, d.user_id, d.importance, wanted.chunk,
       CASE WHEN wanted.place = min(wanted.place) OVER () THEN concat_ws(' ', d.title, p.content) END AS first_text
FROM unnest(%(ids)s::uuid[], %(chunks)s::integer[]) WITH ORDINALITY AS wanted (id, chunk, place)
JOIN passages p ON p.id = wanted.id
JOIN documents d ON d.id = p.document_id
WHERE /*visible*/ AND /*filters*/ true

-- name: nearest_passages
-- Chunks of passages that the query may see, by the bare distance, so that the vector index serves it.
SELECT c.passage_id, c.chunk, (1 - (c.embedding /*typed*/ <=> %(embedding)s::vector /*typed*/))::float8 AS cosine
FROM passage_chunks c
JOIN passages p ON p.id = c.passage_id
JOIN documents d ON d.id = p.document_id
WHERE c.tenant = %(tenant)s AND c.workspace = %(workspace)s AND c.namespace = %(namespace)s
  AND c.generation = %(generation)s
  AND (%(user_id)s::text IS NULL OR c.user_id IS NULL OR c.user_id = %(user_id)s)
  AND /*filters*/ true
ORDER BY c.embedding /*typed*/ <=> %(embedding)s::vector /*typed*/
LIMIT %(limit)s

-- name: find_unembedded_passages
-- By id. OFFSET 0: as in find_unembedded_messages.
SELECT p.id, d.content_hash AS guard, d.title, p.heading, p.content
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
  AND (%(after)s::uuid IS NULL OR p.id > %(after)s)
  AND (NOT EXISTS (SELECT FROM passage_chunks c WHERE c.passage_id = p.id AND c.generation = %(generation)s OFFSET 0)
       OR EXISTS (SELECT FROM refused_texts f WHERE f.generation = %(generation)s AND f.id = p.id))
ORDER BY p.id
LIMIT %(limit)s

-- name: embed_passages
-- For passages that still exist.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(chunks)s::integer[], %(starts)s::integer[],
                         %(ends)s::integer[], %(embeddings)b::vector[], %(words)s::text[])
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

-- name: read_passage_records
SELECT p.id, p.content, p.heading, d.title, d.tenant, d.workspace, d.namespace, d.user_id, d.agent_id, d.tags,
       d.source, d.event_at, d.importance,
       array_agg(c.text_start ORDER BY c.chunk) AS starts,
       array_agg(c.text_end ORDER BY c.chunk) AS ends,
       array_agg(c.embedding::real[] ORDER BY c.chunk) AS embeddings
FROM passages p
JOIN documents d ON d.id = p.document_id
JOIN passage_chunks c ON c.passage_id = p.id
JOIN embedding_generations g ON g.generation = c.generation AND g.is_active
WHERE p.id = ANY(%(ids)s)
GROUP BY p.id, d.id

-- name: list_passage_ids
SELECT id FROM passages
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s)
ORDER BY id
LIMIT %(limit)s

-- name: enqueue_all_documents
INSERT INTO outbox (projection, memory_id)
SELECT 'documents', id FROM passages ORDER BY id

-- name: read_linked_passages
-- Each with the cosine of its chunk nearest to the query.
SELECT p.id, d.event_at, 0 AS text_start, NULL::integer AS text_end, 1.0::float8 AS confidence,
       d.importance, d.user_id, NULL::timestamptz AS last_hit_at, 'warm' AS temperature,
       NULL::timestamptz AS expires_at,
       coalesce((SELECT 1 - min(c.embedding <=> %(embedding)s::vector)
                 FROM passage_chunks c WHERE c.passage_id = p.id AND c.generation = %(generation)s), 0)::float8 AS cosine
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE p.id = ANY(%(ids)s)
  AND /*visible*/ AND /*filters*/ true

-- name: link_similar_passages
-- Each new passage to the nearest others that its readers may see, all in one round trip.
INSERT INTO memory_links (
    from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
)
SELECT p.id, near.id, 'similar', 6, p.tenant, p.workspace, p.namespace, p.user_id, d.source, least(1, near.cosine),
       d.event_at
FROM passages p
JOIN documents d ON d.id = p.document_id
JOIN passage_chunks own ON own.passage_id = p.id AND own.generation = %(generation)s AND own.chunk = 0
CROSS JOIN LATERAL (
    SELECT other.id, max(1 - found.distance) AS cosine
    FROM (
        SELECT c.passage_id, c.embedding /*typed*/ <=> own.embedding /*typed*/ AS distance
        FROM passage_chunks c
        WHERE c.tenant = p.tenant AND c.workspace = p.workspace AND c.namespace = p.namespace
          AND c.generation = %(generation)s
        ORDER BY c.embedding /*typed*/ <=> own.embedding /*typed*/
        LIMIT 4 * %(fan_out)s
    ) found
    JOIN passages other ON other.id = found.passage_id AND other.id <> p.id
                       AND (other.user_id IS NULL OR other.user_id = p.user_id)
    GROUP BY other.id
    ORDER BY 2 DESC, 1
    LIMIT %(fan_out)s
) near
WHERE p.id = ANY(%(ids)s) AND near.cosine >= %(min_similarity)s
ON CONFLICT DO NOTHING

-- name: erase_user_passages
WITH page AS (
    SELECT p.id, p.document_id, d.workspace, d.namespace
    FROM documents d JOIN passages p ON p.document_id = d.id
    WHERE d.tenant = %(tenant)s AND d.user_id = %(user_id)s
    ORDER BY p.id
    LIMIT %(limit)s
    FOR UPDATE OF p
), gone AS (
    DELETE FROM passages p USING page WHERE p.id = page.id
    RETURNING p.id, page.workspace, page.namespace
)
SELECT id, workspace, namespace FROM gone

-- name: erase_user_documents
-- Documents of a user whose passages are deleted.
DELETE FROM documents d
WHERE tenant = %(tenant)s AND user_id = %(user_id)s
  AND NOT EXISTS (SELECT FROM passages p WHERE p.document_id = d.id)
RETURNING id, workspace, namespace

-- name: count_unembedded_passages
-- Passages of everybody that are older than a while and lack vectors of a generation.
SELECT count(*) AS lacking
FROM passages p JOIN documents d ON d.id = p.document_id
WHERE d.updated_at < clock_timestamp() - %(grace)s::interval
  AND NOT EXISTS (SELECT FROM passage_chunks c WHERE c.passage_id = p.id AND c.generation = %(generation)s)

-- name: count_user_documents
SELECT count(*) AS documents FROM documents WHERE tenant = %(tenant)s AND user_id = %(user_id)s

-- name: find_present_documents
SELECT id FROM documents WHERE id = ANY(%(ids)s) AND tenant = %(tenant)s

-- name: find_document_of_passage
SELECT d.id FROM passages p JOIN documents d ON d.id = p.document_id WHERE p.id = %(id)s AND d.tenant = %(tenant)s

-- name: read_found_passages
-- Rows of hits: a part of one statement. It asks again for all that the query may see, for a row may have
-- changed since a source ranked it.
SELECT 6, p.id, CASE WHEN d.path IS NULL THEN 'passage' ELSE 'file' END, p.content, d.event_at, 1.0, d.importance,
       d.user_id,
       d.agent_id, NULL, NULL, coalesce(d.path, d.sent_key, d.key), d.tags,
       CASE WHEN d.path IS NULL THEN d.metadata
            ELSE json_build_object('path', d.path, 'line_start', p.line_start, 'line_end', p.line_end) END,
       d.source, NULL::timestamptz, 'warm', d.title, d.id, p.position, NULL::timestamptz, p.heading,
       p.page, NULL::text, NULL::text[]
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE p.id = ANY(%(ids)s)
  AND /*visible*/ AND /*filters*/ true
