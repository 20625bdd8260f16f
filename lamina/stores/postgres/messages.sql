-- fragment: visible
m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
AND (%(session_id)s::text IS NULL OR m.session_id = %(session_id)s)
AND (%(user_id)s::text IS NULL OR m.user_id IS NULL OR m.user_id = %(user_id)s)

-- name: reserve_positions
INSERT INTO sessions AS s (tenant, workspace, namespace, session_id)
VALUES (%(tenant)s, %(workspace)s, %(namespace)s, %(session_id)s)
ON CONFLICT (tenant, workspace, namespace, session_id) DO UPDATE SET next_position = s.next_position
RETURNING next_position

-- name: find_messages
-- A message whose text was changed since is known by what was sent, too; one that says just that comes before it.
SELECT id, sent_hash AS content_hash, position, 1 AS place FROM messages
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s
  AND user_id IS NOT DISTINCT FROM %(user_id)s AND sent_hash = ANY(%(hashes)s)
UNION ALL
SELECT id, content_hash, position, 2 FROM messages
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s
  AND user_id IS NOT DISTINCT FROM %(user_id)s AND content_hash = ANY(%(hashes)s)
ORDER BY place

-- name: insert_messages
-- Messages of one session with their chunks.
WITH said AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(positions)s::bigint[], %(roles)s::text[], %(names)s::text[],
                         %(refs)s::text[], %(contents)b::text[], %(hashes)s::bytea[], %(metadata)b::json[],
                         %(times)s::timestamptz[], %(importances)s::float8[])
                  AS t (id, position, role, name, ref, content, content_hash, metadata, occurred_at, importance)
), added AS (
    INSERT INTO messages (
        id, tenant, workspace, namespace, session_id, user_id, agent_id, swarm_id,
        position, role, name, ref, content, content_hash, metadata, occurred_at, importance
    )
    SELECT id, %(tenant)s, %(workspace)s, %(namespace)s, %(session_id)s, %(user_id)s, %(agent_id)s, %(swarm_id)s,
           position, role, name, ref, content, content_hash, metadata, occurred_at, importance
    FROM said
), advanced AS (
    UPDATE sessions SET next_position = next_position + cardinality(%(ids)s::uuid[])
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND session_id = %(session_id)s
)
INSERT INTO message_chunks (
    message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at,
    text_start, text_end, generation, embedding
)
SELECT c.id, c.chunk, %(tenant)s, %(workspace)s, %(namespace)s, %(session_id)s, %(user_id)s, said.occurred_at,
       c.text_start, c.text_end, %(generation)s, c.embedding
FROM unnest(%(chunk_ids)s::uuid[], %(chunks)s::int[], %(starts)s::int[], %(ends)s::int[], %(embeddings)b::vector[])
     AS c (id, chunk, text_start, text_end, embedding)
JOIN said ON said.id = c.id

-- fragment: page
tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s
AND (%(include_compacted)s OR compacted_at IS NULL)
AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
AND position >= coalesce(%(after_position)s::bigint, 0)
AND (position, is_summary, id) > (coalesce(%(after_position)s::bigint, -1), coalesce(%(after_is_summary)s, false),
                                  coalesce(%(after_id)s::uuid, '00000000-0000-0000-0000-000000000000'))
ORDER BY position, is_summary, id
LIMIT %(offset)s + %(limit)s

-- name: list_messages
-- Messages and summaries by an index each; a page needs no more of either than its end.
SELECT id, session_id, user_id, agent_id, position, role, name, ref, content, metadata, occurred_at, importance,
       is_summary, compacted_into
FROM (
    (SELECT * FROM messages WHERE NOT is_summary AND /*page*/)
    UNION ALL
    (SELECT * FROM messages WHERE is_summary AND /*page*/)
) AS both_kinds
ORDER BY position, is_summary, id
LIMIT %(limit)s OFFSET %(offset)s

-- name: get_message
SELECT id, session_id, user_id, agent_id, position, role, name, ref, content, metadata, occurred_at, importance,
       is_summary, compacted_into
FROM messages
WHERE id = %(id)s AND tenant = %(tenant)s

-- name: read_message
SELECT workspace, namespace, session_id, user_id, agent_id, swarm_id, role, name, ref, content, content_hash, metadata,
       occurred_at, importance, is_summary, compacted_at IS NOT NULL AS is_compacted, compacted_into
FROM messages
WHERE id = %(id)s AND tenant = %(tenant)s

-- name: read_speakers
-- Of the last messages alone, by the index of positions: a session may have a million.
SELECT DISTINCT name
FROM (
    SELECT role, name
    FROM messages
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND session_id = %(session_id)s AND user_id = %(user_id)s AND NOT is_summary
    ORDER BY position DESC
    LIMIT 200
) last
WHERE role = 'user'

-- name: change_message
-- The hash of what was sent stays: the same delivery again is this message.
UPDATE messages
SET content = %(content)s, content_hash = %(hash)s, metadata = %(metadata)s, importance = %(importance)s,
    sent_hash = CASE WHEN content_hash = %(hash)s THEN sent_hash ELSE coalesce(sent_hash, content_hash) END
WHERE id = %(id)s

-- name: delete_message_chunks
-- Of all generations: a build of vectors finds the message without them.
DELETE FROM message_chunks WHERE message_id = %(id)s

-- name: insert_message_chunks
INSERT INTO message_chunks (
    message_id, chunk, tenant, workspace, namespace, session_id, user_id, occurred_at, text_start, text_end, generation,
    embedding)
SELECT m.id, c.chunk, m.tenant, m.workspace, m.namespace, m.session_id, m.user_id, m.occurred_at, c.text_start,
       c.text_end, %(generation)s, c.embedding
FROM unnest(%(chunk_ids)s::uuid[], %(chunks)s::int[], %(starts)s::int[], %(ends)s::int[], %(embeddings)b::vector[])
     AS c (id, chunk, text_start, text_end, embedding)
JOIN messages m ON m.id = c.id

-- name: search_messages
-- What both sources of the tier find, and the places of that and of the messages around it: rows of the nearest
-- messages, by the best chunk of each, with its cosine; those of the places of an index, with the text of the first of
-- them; and one row with places, the number of chunks that the scope holds, as far as they were counted, and how many
-- of them the nearest were chosen from. Places are ids and numbers alone, packed into one value, since a row for each
-- of hundreds costs more than finding them. A summary has the position of the last message that it stands for.
WITH sized AS MATERIALIZED (/*sized*/), near_chunks AS MATERIALIZED (
    SELECT m.id, m.occurred_at, n.text_start, n.text_end, m.user_id, n.chunk, 1 - n.distance AS cosine, m.importance
    FROM (/*nearest*/) n
    JOIN messages m ON m.id = n.message_id AND m.compacted_at IS NULL
    ORDER BY n.distance, m.id, n.chunk
    LIMIT %(candidates)s
), nearest AS MATERIALIZED (
    SELECT *
    FROM (SELECT DISTINCT ON (id) * FROM near_chunks ORDER BY id, -cosine, chunk) best
    ORDER BY -cosine, id
    LIMIT %(limit)s
), visible AS MATERIALIZED (
    SELECT m.id, m.occurred_at, c.text_start, c.text_end, m.user_id, c.chunk, m.importance,
           CASE WHEN wanted.place = min(wanted.place) OVER ()
                THEN concat_ws(' ', m.name, substr(concat_ws(': ', nullif(m.name, ''), m.content), c.text_start + 1,
                                                   c.text_end - c.text_start)) END AS first_text
    FROM unnest(%(ids)s::uuid[], %(chunks)s::integer[]) WITH ORDINALITY AS wanted (id, chunk, place)
    JOIN messages m ON m.id = wanted.id
    JOIN message_chunks c ON c.message_id = m.id AND c.chunk = wanted.chunk AND c.generation = %(generation)s
    WHERE /*visible*/ AND m.compacted_at IS NULL AND /*filters*/ true
), stretches AS (
    -- Of each session, without overlap: hundreds of messages stand near each other.
    SELECT session_id, unnest(places) AS places, dense_rank() OVER (ORDER BY session_id)::integer AS session
    FROM (
        SELECT m.session_id,
               range_agg(int8range(m.position - %(reach)s, m.position + %(reach)s, '[]')) AS places
        FROM (SELECT id FROM nearest WHERE cosine >= %(min_similarity)s UNION SELECT id FROM visible) found
        JOIN messages m ON m.id = found.id
        GROUP BY m.session_id
    ) of_sessions
), placed AS (
    -- A row has another xmin after each change.
    SELECT string_agg(uuid_send(m.id) || int8send(m.position) || int4send(s.session) || xidsend(m.version), ''::bytea
                      ORDER BY s.session, m.position, m.id) AS places
    FROM stretches s
    CROSS JOIN LATERAL (
        SELECT said.*, said.xmin AS version FROM messages said
        WHERE said.tenant = %(tenant)s AND said.workspace = %(workspace)s AND said.namespace = %(namespace)s
          AND said.session_id = s.session_id AND NOT said.is_summary
          AND said.position BETWEEN lower(s.places) AND upper(s.places) - 1
        UNION ALL
        SELECT summary.*, summary.xmin AS version FROM messages summary
        WHERE summary.tenant = %(tenant)s AND summary.workspace = %(workspace)s AND summary.namespace = %(namespace)s
          AND summary.session_id = s.session_id AND summary.is_summary
          AND summary.position BETWEEN lower(s.places) AND upper(s.places) - 1
    ) m
    WHERE m.compacted_at IS NULL
      AND (%(session_id)s::text IS NULL OR m.session_id = %(session_id)s)
      AND (%(user_id)s::text IS NULL OR m.user_id IS NULL OR m.user_id = %(user_id)s)
      AND /*filters*/ true
)
SELECT id, occurred_at, text_start, text_end, user_id, importance, chunk, cosine, NULL::text AS first_text,
       NULL::bytea AS places, NULL::bigint AS of_scope, NULL::bigint AS near_chunks
FROM nearest
UNION ALL
SELECT id, occurred_at, text_start, text_end, user_id, importance, chunk, NULL, first_text, NULL, NULL, NULL
FROM visible
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, placed.places, sized.chunks,
       (SELECT count(*) FROM near_chunks)
FROM placed, sized

-- name: count_chunks
-- A part of search_messages: how many chunks the scope holds, one more than are compared at most.
SELECT count(*) AS chunks
FROM (
    SELECT FROM message_chunks
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
    LIMIT %(most_compared)s + 1
) counted

-- name: nearest_compared
-- A part of search_messages: every chunk of a scope that holds few. OFFSET 0 keeps it from the vector index.
SELECT *
FROM (
    SELECT message_id, chunk, text_start, text_end, embedding <=> %(embedding)s::vector AS distance
    FROM message_chunks
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND generation = %(generation)s AND %(embedding)s::vector IS NOT NULL
      AND (SELECT chunks FROM sized) <= %(most_compared)s
      AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
      AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
      AND /*chunk filters*/ true
    OFFSET 0
) compared
ORDER BY distance
LIMIT %(candidates)s

-- name: nearest_by_index
-- A part of search_messages: by the bare distance, so that the vector index serves it. Where it finds fewer than it was
-- asked for, either there are no more, or among vectors that are alike it has lost its way: of 2 400 messages that said
-- the same it found none. Then a bounded number of the scope's chunks is compared as well, without it.
WITH near AS MATERIALIZED (
    SELECT message_id, chunk, text_start, text_end, embedding /*typed*/ <=> %(embedding)s::vector /*typed*/ AS distance
    FROM message_chunks
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND generation = %(generation)s AND %(embedding)s::vector IS NOT NULL
      AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
      AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
      AND /*chunk filters*/ true
    ORDER BY embedding /*typed*/ <=> %(embedding)s::vector /*typed*/
    LIMIT %(candidates)s
)
TABLE near
UNION
(SELECT message_id, chunk, text_start, text_end, embedding /*typed*/ <=> %(embedding)s::vector /*typed*/ AS distance
 FROM (
     SELECT * FROM message_chunks
     WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
       AND generation = %(generation)s AND %(embedding)s::vector IS NOT NULL
       AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
       AND (SELECT count(*) FROM near) < %(candidates)s
     LIMIT %(most_read)s
 ) of_scope
 WHERE (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
   AND /*chunk filters*/ true
 ORDER BY distance
 LIMIT %(candidates)s)

-- name: find_messages_around
-- The wanted messages and those right before and after them, each at its chunk nearest to the query. A summary has
-- the position of the last message that it stands for, and so is the neighbour of the next one. Messages and
-- summaries have an index each, and the statement a part for each.
SELECT DISTINCT ON (m.id)
       m.id, m.occurred_at, c.text_start, c.text_end, m.user_id, m.importance, m.session_id, m.position,
       coalesce(1 - (c.embedding <=> %(embedding)s::vector), 0)::float8 AS cosine
FROM messages wanted
CROSS JOIN LATERAL (
    SELECT said.* FROM messages said
    WHERE said.tenant = wanted.tenant AND said.workspace = wanted.workspace AND said.namespace = wanted.namespace
      AND said.session_id = wanted.session_id
      AND said.position IN (wanted.position - 1, wanted.position, wanted.position + 1) AND NOT said.is_summary
    UNION ALL
    SELECT summary.* FROM messages summary
    WHERE summary.tenant = wanted.tenant AND summary.workspace = wanted.workspace
      AND summary.namespace = wanted.namespace AND summary.session_id = wanted.session_id
      AND summary.position IN (wanted.position - 1, wanted.position, wanted.position + 1) AND summary.is_summary
) m
JOIN message_chunks c ON c.message_id = m.id AND c.generation = %(generation)s
WHERE wanted.id = ANY(%(ids)s) AND m.compacted_at IS NULL AND /*visible*/ AND /*filters*/ true
ORDER BY m.id, cosine DESC, c.chunk

-- name: read_utterances
-- The beginning of a text is enough to weigh its words; five messages of a megabyte took five seconds.
SELECT m.id, m.role, m.name, left(m.content, 8000) AS content, m.occurred_at, m.user_id, m.importance, c.vectors,
       c.starts, c.ends
FROM messages m
CROSS JOIN LATERAL (
    SELECT string_agg(vector_send(embedding), ''::bytea ORDER BY chunk) AS vectors,
           array_agg(text_start ORDER BY chunk) AS starts, array_agg(text_end ORDER BY chunk) AS ends
    FROM message_chunks
    WHERE message_id = m.id AND generation = %(generation)s
) c
WHERE m.id = ANY(%(ids)s) AND m.tenant = %(tenant)s AND m.compacted_at IS NULL

-- name: find_unembedded_messages
-- By id. Compacted messages have their vectors in a table of their own. OFFSET 0: looked up row by row, not by a
-- hash of all existing vectors, which each page would build anew. A vector in the place of a text that the model refused
-- is none.
SELECT m.id, m.content_hash AS guard, m.role, m.name, m.content
FROM messages m
WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
  AND (%(after)s::uuid IS NULL OR m.id > %(after)s)
  AND (CASE WHEN m.compacted_at IS NULL
       THEN NOT EXISTS (SELECT FROM message_chunks c WHERE c.message_id = m.id AND c.generation = %(generation)s OFFSET 0)
       ELSE NOT EXISTS (SELECT FROM compacted_chunks c WHERE c.message_id = m.id AND c.generation = %(generation)s OFFSET 0) END
       OR EXISTS (SELECT FROM refused_texts f WHERE f.generation = %(generation)s AND f.id = m.id))
ORDER BY m.id
LIMIT %(limit)s

-- name: embed_messages
-- For messages that still exist, in the table where each belongs now.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(chunks)s::integer[], %(starts)s::integer[],
                         %(ends)s::integer[], %(embeddings)b::vector[])
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

-- name: read_message_records
SELECT m.id, m.tenant, m.workspace, m.namespace, m.user_id, m.agent_id, m.session_id, m.role, m.occurred_at, m.importance, m.name, m.content,
       array_agg(c.text_start ORDER BY c.chunk) AS starts,
       array_agg(c.text_end ORDER BY c.chunk) AS ends
FROM messages m
JOIN message_chunks c ON c.message_id = m.id
JOIN embedding_generations g ON g.generation = c.generation AND g.is_active
WHERE m.id = ANY(%(ids)s) AND m.compacted_at IS NULL
GROUP BY m.id

-- name: list_message_ids
SELECT id FROM messages
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s) AND compacted_at IS NULL
ORDER BY id
LIMIT %(limit)s

-- name: enqueue_all_messages
INSERT INTO outbox (projection, memory_id)
SELECT 'messages', id FROM messages WHERE compacted_at IS NULL ORDER BY id

-- name: read_linked_messages
-- Each at its chunk nearest to the query.
SELECT DISTINCT ON (m.id)
       m.id, m.occurred_at, c.text_start, c.text_end, 1.0::float8 AS confidence, m.importance, m.user_id,
       NULL::timestamptz AS last_hit_at, 'warm' AS temperature, NULL::timestamptz AS expires_at,
       coalesce(1 - (c.embedding <=> %(embedding)s::vector), 0)::float8 AS cosine
FROM messages m
JOIN message_chunks c ON c.message_id = m.id AND c.generation = %(generation)s
WHERE m.id = ANY(%(ids)s) AND m.compacted_at IS NULL AND /*visible*/ AND /*filters*/ true
ORDER BY m.id, cosine DESC, c.chunk

-- name: erase_user_messages
WITH page AS (
    SELECT id FROM messages
    WHERE tenant = %(tenant)s AND user_id = %(user_id)s
    ORDER BY id
    LIMIT %(limit)s
    FOR UPDATE
), gone AS (
    DELETE FROM messages m USING page WHERE m.id = page.id
    RETURNING m.id, m.workspace, m.namespace
), kept AS (
    DELETE FROM job_changes j USING gone WHERE j.row_id = gone.id
)
SELECT id, workspace, namespace FROM gone

-- name: erase_user_turns
WITH page AS (
    SELECT id FROM agent_turns
    WHERE tenant = %(tenant)s AND user_id = %(user_id)s
    ORDER BY id
    LIMIT %(limit)s
    FOR UPDATE
)
DELETE FROM agent_turns t USING page WHERE t.id = page.id
RETURNING t.id, t.workspace, t.namespace

-- name: count_unembedded_messages
-- Messages of everybody that are older than a while and lack vectors of a generation.
SELECT count(*) AS lacking
FROM messages m
WHERE m.created_at < clock_timestamp() - %(grace)s::interval
  AND CASE WHEN m.compacted_at IS NULL
      THEN NOT EXISTS (SELECT FROM message_chunks c WHERE c.message_id = m.id AND c.generation = %(generation)s)
      ELSE NOT EXISTS (SELECT FROM compacted_chunks c WHERE c.message_id = m.id AND c.generation = %(generation)s) END

-- name: count_user_messages
SELECT (SELECT count(*) FROM messages WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS messages,
       (SELECT count(*) FROM agent_turns WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS turns

-- name: find_present_messages
SELECT id FROM messages WHERE id = ANY(%(ids)s) AND tenant = %(tenant)s

-- name: delete_message
-- Its vectors are deleted with it, and what the journal of job runs says of it. Of a summary, with what it replaced.
WITH gone AS (
    DELETE FROM messages WHERE id = %(id)s AND tenant = %(tenant)s
    RETURNING id, tenant, workspace, namespace, user_id, session_id, is_summary
), kept AS (
    DELETE FROM job_changes j USING gone WHERE j.row_id = gone.id
)
SELECT workspace, namespace, user_id, session_id,
       ARRAY(SELECT m.id FROM messages m
             WHERE gone.is_summary AND m.compacted_into = gone.id
               AND (m.tenant, m.workspace, m.namespace, m.session_id)
                   = (gone.tenant, gone.workspace, gone.namespace, gone.session_id)
             ORDER BY m.id) AS replaced
FROM gone

-- name: read_found_messages
-- Rows of hits: a part of one statement. It asks again for all that the query may see, for a row may have
-- changed since a source ranked it.
SELECT 1 AS tier, m.id, 'message' AS kind, m.content, m.occurred_at, 1.0::float8 AS confidence,
       m.importance, m.user_id, m.agent_id, m.session_id, m.name, m.ref, '{}'::text[] AS tags, m.metadata,
       m.role AS source, NULL::timestamptz AS last_hit_at, 'warm' AS temperature, NULL::text AS title,
       NULL::uuid AS document_id, NULL::integer AS position, NULL::timestamptz AS expires_at, NULL::text AS heading,
       NULL::integer AS page, NULL::text AS trigger, NULL::text[] AS speakers
FROM messages m
WHERE m.id = ANY(%(ids)s) AND m.compacted_at IS NULL AND /*visible*/ AND /*filters*/ true
