-- name: prolong_notes
-- A repeated note stays as long as the later one would have; a row that does not change is not waited for.
UPDATE notes n SET expires_at = told.expires_at
FROM (
    SELECT id, nullif(max(coalesce(expires_at, 'infinity')), 'infinity') AS expires_at
    FROM unnest(%(ids)s::uuid[], %(expiries)s::timestamptz[]) AS given (id, expires_at)
    GROUP BY id
) told
WHERE n.id = told.id AND n.deleted_at IS NULL AND n.expires_at < coalesce(told.expires_at, 'infinity')

-- name: add_speakers
-- Of notes that somebody else says, too. Where a user without a name does, it is said in the user's own name: none stands.
UPDATE notes n
SET speakers = CASE WHEN '' = ANY(told.speakers) THEN NULL
                    ELSE (n.speakers || ARRAY(SELECT name FROM unnest(told.speakers) AS name
                                              WHERE name <> ALL(n.speakers) ORDER BY name))[:%(most)s] END
FROM (
    SELECT id, array_agg(DISTINCT speaker) AS speakers
    FROM unnest(%(ids)s::uuid[], %(speakers)s::text[]) AS given (id, speaker)
    GROUP BY id
) told
WHERE n.id = told.id AND n.deleted_at IS NULL AND n.speakers IS NOT NULL AND NOT told.speakers <@ n.speakers
  AND ('' = ANY(told.speakers) OR cardinality(n.speakers) < %(most)s)

-- name: insert_notes
-- In the given order, in which rows are locked. Tags come as JSON, for an array of arrays would have to be square.
INSERT INTO notes (
    id, tenant, workspace, namespace, user_id, agent_id, session_id, swarm_id, category, content, content_hash,
    importance, confidence, tags, metadata, source, event_at, expires_at, created_at, updated_at,
    last_hit_at, temperature_changed_at, speakers
)
SELECT t.id, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s, %(agent_id)s, %(session_id)s, %(swarm_id)s,
       t.category, t.content, t.content_hash, t.importance, t.confidence,
       ARRAY(SELECT jsonb_array_elements_text(t.tags)), t.metadata, t.source, t.event_at, t.expires_at,
       %(now)s, %(now)s, %(now)s, %(now)s, nullif(ARRAY(SELECT jsonb_array_elements_text(t.speakers)), '{}')
FROM unnest(%(ids)s::uuid[], %(categories)s::text[], %(contents)b::text[], %(hashes)s::bytea[],
            %(importances)s::float8[], %(confidences)s::float8[], %(tags)s::jsonb[], %(metadata)b::json[],
            %(sources)b::text[], %(times)s::timestamptz[], %(expiries)s::timestamptz[], %(speakers)s::jsonb[])
     WITH ORDINALITY AS t (id, category, content, content_hash, importance, confidence, tags, metadata, source,
                           event_at, expires_at, speakers, place)
ORDER BY t.place
ON CONFLICT (tenant, workspace, namespace, user_id, content_hash) WHERE deleted_at IS NULL DO NOTHING
RETURNING id

-- name: find_notes_by_hash
SELECT id, content_hash FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND user_id IS NOT DISTINCT FROM %(user_id)s
  AND content_hash = ANY(%(hashes)s) AND deleted_at IS NULL

-- name: insert_note_chunks
INSERT INTO note_chunks (
    note_id, chunk, tenant, workspace, namespace, text_start, text_end, tsv, generation, embedding
)
SELECT c.id, c.chunk, %(tenant)s, %(workspace)s, %(namespace)s, c.text_start, c.text_end,
       to_tsvector('lamina', c.words), %(generation)s, c.embedding
FROM unnest(%(chunk_ids)s::uuid[], %(chunks)s::int[], %(starts)s::int[], %(ends)s::int[], %(words)b::text[],
            %(embeddings)b::vector[])
     AS c (id, chunk, text_start, text_end, words, embedding)

-- name: get_note_for_update
SELECT id, workspace, namespace, user_id, agent_id, session_id, category, content, importance, confidence, tags,
       metadata, source, version, hits, event_at, last_hit_at, temperature, weight, expires_at, created_at,
       updated_at, speakers
FROM notes
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())
FOR UPDATE

-- name: find_note_elsewhere
-- A note that is archived, or merged into another one.
SELECT merged_into, false AS is_archived FROM notes
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NOT NULL AND merged_into IS NOT NULL
UNION ALL
SELECT NULL, true FROM archived_notes WHERE id = %(id)s AND tenant = %(tenant)s

-- name: insert_note_version
-- The present state, of which the latest so many are kept.
WITH ended AS (
    DELETE FROM note_versions v USING notes n
    WHERE n.id = %(id)s AND v.note_id = n.id AND v.version <= n.version - %(kept)s
)
INSERT INTO note_versions (note_id, version, content, category, importance, confidence, tags, metadata, written_at)
SELECT id, version, content, category, importance, confidence, tags, metadata, updated_at
FROM notes
WHERE id = %(id)s AND %(kept)s > 0

-- name: update_note
UPDATE notes
SET category = %(category)s, content = %(content)s, content_hash = %(content_hash)s, importance = %(importance)s,
    confidence = %(confidence)s, tags = %(tags)s, metadata = %(metadata)s, event_at = %(event_at)s,
    expires_at = %(expires_at)s, weight = 1,
    -- Nobody said the new text.
    speakers = CASE WHEN content = %(content)s THEN speakers END,
    version = version + 1, updated_at = %(now)s, last_hit_at = greatest(last_hit_at, %(now)s)
WHERE id = %(id)s
RETURNING id, workspace, namespace, user_id, agent_id, session_id, category, content, importance, confidence, tags,
          metadata, source, version, hits, event_at, last_hit_at, temperature, weight, expires_at, created_at, updated_at,
          speakers

-- name: delete_note_chunks
DELETE FROM note_chunks WHERE note_id = %(id)s

-- name: lock_note_sources
SELECT id FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())
  AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
  AND id = ANY(%(ids)s)
ORDER BY id
FOR SHARE

-- name: insert_note_source
INSERT INTO note_sources (note_id, source_id) VALUES (%(note_id)s, %(source_id)s)
ON CONFLICT DO NOTHING

-- name: expire_derived
-- Notes made from these, directly or not, expire no later than they do; hidden ones too, for they may come back.
WITH RECURSIVE made (id, expires_at) AS (
    SELECT s.note_id, n.expires_at
    FROM note_sources s
    JOIN notes n ON n.id = s.source_id
    WHERE s.source_id = ANY(%(ids)s) AND n.expires_at IS NOT NULL
    UNION
    SELECT s.note_id, m.expires_at FROM made m JOIN note_sources s ON s.source_id = m.id
)
UPDATE notes n SET expires_at = least(n.expires_at, first.expires_at)
FROM (SELECT id, min(expires_at) AS expires_at FROM made GROUP BY id) AS first
WHERE n.id = first.id AND (n.expires_at IS NULL OR n.expires_at > first.expires_at)

-- name: lock_expired_notes
-- Nobody sees them any more, but the constraint would still refuse a note of the same text.
SELECT id FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND user_id IS NOT DISTINCT FROM %(user_id)s
  AND content_hash = ANY(%(hashes)s) AND deleted_at IS NULL AND expires_at <= statement_timestamp()
ORDER BY id
FOR UPDATE

-- name: lock_drawn_notes
-- Those that extraction drew from a message, and that nobody changed or pinned since; one that was merged into another,
-- too. A writer may name the message as the source of a note of somebody else's: that one is not drawn from it.
SELECT id, content_hash FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s
  AND user_id IS NOT DISTINCT FROM %(user_id)s AND source = %(source)s AND (deleted_at IS NULL OR merged_into IS NOT NULL) AND version = 1
  AND NOT EXISTS (SELECT FROM feedback f
                  WHERE f.tenant = notes.tenant AND f.memory_id = notes.id AND f.pinned_at IS NOT NULL)
ORDER BY id
FOR UPDATE

-- name: hand_over_notes
-- Those of these notes, which are locked, whose text another message of their session holds: they are drawn from that
-- one. It is locked, or a correction of it at this moment would leave them. Who only quotes or denies what a speaker
-- said has another name.
UPDATE notes n SET source = 'message:' || said.id,
    speakers = CASE WHEN n.speakers IS NULL AND said.name IS NOT NULL THEN ARRAY[said.name]
                    WHEN n.speakers IS NOT NULL THEN ARRAY(
                        SELECT s.name FROM unnest(n.speakers) WITH ORDINALITY AS s (name, place)
                        WHERE EXISTS (SELECT FROM messages m
                                      WHERE (m.tenant, m.workspace, m.namespace, m.session_id)
                                            = (n.tenant, n.workspace, n.namespace, n.session_id)
                                        AND m.user_id IS NOT DISTINCT FROM n.user_id AND m.id <> %(message)s
                                        AND m.name = s.name AND m.role <> 'tool' AND NOT m.is_summary
                                        AND position(n.content IN m.content) > 0)
                        ORDER BY s.place) END
FROM (
    SELECT told.id AS note, m.id, m.name
    FROM unnest(%(ids)s::uuid[]) AS told (id)
    CROSS JOIN LATERAL (
        SELECT m.id, CASE WHEN m.role <> 'tool' THEN m.name END AS name FROM notes d
        JOIN messages m ON (m.tenant, m.workspace, m.namespace, m.session_id)
                           = (d.tenant, d.workspace, d.namespace, d.session_id)
        WHERE d.id = told.id AND m.user_id IS NOT DISTINCT FROM d.user_id AND m.id <> %(message)s AND NOT m.is_summary
          AND position(d.content IN m.content) > 0
          AND (d.speakers IS NULL OR (m.role <> 'tool' AND m.name = ANY(d.speakers)))
        ORDER BY m.position
        LIMIT 1
        FOR SHARE OF m
    ) m
) said
WHERE n.id = said.note
RETURNING n.id

-- name: withdraw_speaker
-- A message, which is locked and has its new text, states these notes no more, though others do: they are its speaker's
-- only where another message of his, in its session or the note's own, has their text. One that the user said without a
-- name is again of who said it first.
UPDATE notes n SET speakers = CASE WHEN %(name)s::text IS NULL THEN ARRAY[first.name]
                                   ELSE array_remove(n.speakers, %(name)s) END
FROM notes o
LEFT JOIN messages first ON (first.tenant, first.workspace, first.namespace, first.session_id)
                            = (o.tenant, o.workspace, o.namespace, o.session_id)
    AND first.user_id IS NOT DISTINCT FROM o.user_id AND o.source = 'message:' || first.id AND first.role <> 'tool'
    AND position(o.content IN first.content) > 0
WHERE n.id = o.id
  AND o.tenant = %(tenant)s AND o.workspace = %(workspace)s AND o.namespace = %(namespace)s
  AND o.user_id IS NOT DISTINCT FROM %(user_id)s AND o.content_hash = ANY(%(hashes)s) AND o.deleted_at IS NULL
  AND CASE WHEN %(name)s::text IS NULL THEN n.speakers IS NULL AND n.version = 1 AND first.name IS NOT NULL
           ELSE %(name)s = ANY(n.speakers) AND cardinality(n.speakers) > 1 END
  AND NOT EXISTS (
      SELECT FROM messages m
      WHERE m.tenant = o.tenant AND m.workspace = o.workspace AND m.namespace = o.namespace
        AND m.session_id IN (o.session_id, %(session_id)s) AND m.user_id IS NOT DISTINCT FROM o.user_id
        AND m.name IS NOT DISTINCT FROM %(name)s AND NOT m.is_summary AND position(o.content IN m.content) > 0
        AND CASE WHEN %(name)s::text IS NULL THEN m.role = 'user' ELSE m.role <> 'tool' END)

-- name: delete_notes
-- The given notes, which are locked, with every note that was made from them, directly or not, and every note that
-- was merged into them: it is hidden, but could come back; without its survivor's name it cannot. A note that was
-- merged into a derived one is released instead (release_merged). Run it until no row is left: a derived note that
-- is written while it waits is only seen by the next run.
WITH RECURSIVE doomed (id, is_direct) AS (
    SELECT unnest(%(ids)s::uuid[]), true
    UNION
    SELECT more.id, more.is_direct
    FROM doomed d
    CROSS JOIN LATERAL (
        SELECT s.note_id, false FROM note_sources s WHERE s.source_id = d.id
        UNION ALL
        SELECT m.id, true FROM notes m WHERE m.merged_into = d.id AND d.is_direct
    ) AS more (id, is_direct)
), each AS (
    SELECT id, bool_or(is_direct) AS is_direct FROM doomed GROUP BY id
)
UPDATE notes n SET deleted_at = coalesce(n.deleted_at, %(now)s), merged_into = NULL
FROM each d
WHERE n.id = d.id AND n.tenant = %(tenant)s AND (n.deleted_at IS NULL OR n.merged_into IS NOT NULL)
RETURNING n.id, d.is_direct

-- name: release_merged
-- Notes that were merged into derived ones, which are deleted with their sources, come back unless the scope has
-- their text again. Of equal texts the first comes back, and the others are merged into that one.
WITH candidates AS (
    SELECT m.id, first_value(m.id) OVER (
        PARTITION BY m.workspace, m.namespace, m.user_id, m.content_hash ORDER BY m.id) AS first_id
    FROM notes m
    WHERE m.merged_into = ANY(%(ids)s) AND m.tenant = %(tenant)s AND m.deleted_at IS NOT NULL
      AND NOT EXISTS (
          SELECT FROM notes o
          WHERE (o.tenant, o.workspace, o.namespace, o.content_hash)
                = (m.tenant, m.workspace, m.namespace, m.content_hash)
            AND o.user_id IS NOT DISTINCT FROM m.user_id AND o.deleted_at IS NULL AND o.id <> m.id)
), locked AS (
    SELECT m.id, nullif(c.first_id, m.id) AS first_id
    FROM notes m JOIN candidates c ON c.id = m.id
    WHERE m.merged_into = ANY(%(ids)s) AND m.deleted_at IS NOT NULL
    ORDER BY m.id
    FOR UPDATE OF m
), released AS (
    UPDATE notes m
    SET deleted_at = CASE WHEN l.first_id IS NOT NULL THEN m.deleted_at END, merged_into = l.first_id
    FROM locked l
    WHERE m.id = l.id
    RETURNING m.id, m.deleted_at
)
SELECT id FROM released WHERE deleted_at IS NULL

-- name: get_note
SELECT id, workspace, namespace, user_id, agent_id, session_id, category, content, importance, confidence, tags,
       metadata, source, version, hits, event_at, last_hit_at, temperature, weight, expires_at, created_at,
       updated_at, speakers
FROM notes
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())

-- name: read_note_history
SELECT version, content, category, importance, confidence, tags, metadata, written_at, false AS is_current
FROM note_versions WHERE note_id = %(id)s
UNION ALL
SELECT version, content, category, importance, confidence, tags, metadata, updated_at, true
FROM notes WHERE id = %(id)s
ORDER BY version

-- name: list_notes
SELECT id, workspace, namespace, user_id, agent_id, session_id, category, content, importance, confidence, tags,
       metadata, source, version, hits, event_at, last_hit_at, temperature, weight, expires_at, created_at,
       updated_at, speakers
FROM notes n
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())
  AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
  AND (event_at, id) < (coalesce(%(after_time)s::timestamptz, 'infinity'),
                       coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
  AND /*filters*/ true
ORDER BY event_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s

-- name: fetch_notes
-- Places of an index that the query may see, with the text of the first of them; notes of one temperature, since an
-- index that lags behind may still hold others.
SELECT n.id, n.event_at, c.text_start, c.text_end, n.confidence, n.importance, n.user_id, n.last_hit_at, n.temperature,
       n.expires_at, c.chunk, NULL::float8 AS ts_rank_cd,
       CASE WHEN wanted.place = min(wanted.place) OVER ()
            THEN substr(n.content, c.text_start + 1, c.text_end - c.text_start) END AS first_text
FROM unnest(%(ids)s::uuid[], %(chunks)s::integer[]) WITH ORDINALITY AS wanted (id, chunk, place)
JOIN notes n ON n.id = wanted.id
JOIN note_chunks c ON c.note_id = n.id AND c.chunk = wanted.chunk AND c.generation = %(generation)s
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND n.temperature = %(temperature)s
  AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
  AND n.weight >= %(min_weight)s
  AND (%(user_id)s::text IS NULL OR n.user_id IS NULL OR n.user_id = %(user_id)s)
  AND /*filters*/ true

-- name: search_notes_warm
-- Every word of the query, by cover density, each note at its best chunk, with the text of the first of them.
(SELECT id, event_at, text_start, text_end, confidence, importance, user_id, last_hit_at, temperature, expires_at,
        NULL::integer AS chunk, ts_rank_cd,
        CASE WHEN row_number() OVER (ORDER BY ts_rank_cd DESC, id) = 1
             THEN substr(content, text_start + 1, text_end - text_start) END AS first_text
FROM (
    SELECT DISTINCT ON (n.id)
           n.id, n.event_at, c.text_start, c.text_end, n.confidence, n.importance, n.user_id, n.last_hit_at,
           n.temperature, n.expires_at, n.content, ts_rank_cd(c.tsv, asked)::float8 AS ts_rank_cd
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
LIMIT %(limit)s)

-- name: score_notes
-- Every note of the scope that is near enough, each at its nearest chunk, by nearness, importance and recency. No index
-- of vectors serves it. The least of 500: exp() raises an error in place of a number too small for a double.
SELECT id, event_at, text_start, text_end, confidence, importance, user_id, last_hit_at, temperature, expires_at, cosine
FROM (
    SELECT DISTINCT ON (n.id)
           n.id, n.event_at, c.text_start, c.text_end, n.confidence, n.importance, n.user_id, n.last_hit_at,
           n.temperature, n.expires_at, nullif(1 - (c.embedding <=> %(embedding)s::vector), 'NaN') AS cosine
    FROM notes n
    JOIN note_chunks c ON c.note_id = n.id AND c.generation = %(generation)s
    WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
      AND n.deleted_at IS NULL
      AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
      AND n.weight >= %(min_weight)s
      AND (%(user_id)s::text IS NULL OR n.user_id IS NULL OR n.user_id = %(user_id)s)
      AND /*filters*/ true
    ORDER BY n.id, cosine DESC NULLS LAST, c.chunk
) each_note
WHERE cosine >= %(min_similarity)s::float8
ORDER BY %(similarity)s::float8 * least(1, greatest(0, cosine)) + %(importance)s::float8 * importance
         + %(recency)s::float8 * exp(-least(500, %(decay_per_day)s::float8 * greatest(0, extract(
             epoch FROM coalesce(%(as_of)s::timestamptz, statement_timestamp()) - coalesce(last_hit_at, event_at)
           ) / 86400)::float8)) DESC, id
LIMIT %(limit)s

-- name: lock_unchanged_notes
-- Notes in the state that was read, locked until the transaction ends.
SELECT n.id
FROM unnest(%(ids)s::uuid[], %(versions)s::integer[], %(hits)s::bigint[], %(last)s::timestamptz[])
     AS d (id, version, hits, last_hit_at)
JOIN notes n ON n.id = d.id
WHERE n.tenant = %(tenant)s AND n.deleted_at IS NULL
  AND (n.version, n.hits, n.last_hit_at) = (d.version, d.hits, d.last_hit_at)
ORDER BY n.id
FOR UPDATE OF n

-- name: count_notes
SELECT count(*) AS size FROM notes
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL

-- name: find_unembedded_notes
-- Warm and cold, by id. OFFSET 0: as in find_unembedded_messages.
SELECT n.id, n.content_hash AS guard, n.content
FROM notes n
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND (%(after)s::uuid IS NULL OR n.id > %(after)s)
  AND (NOT EXISTS (SELECT FROM note_chunks c WHERE c.note_id = n.id AND c.generation = %(generation)s OFFSET 0)
       OR EXISTS (SELECT FROM refused_texts f WHERE f.generation = %(generation)s AND f.id = n.id))
ORDER BY n.id
LIMIT %(limit)s

-- name: embed_notes
-- For notes with the same text; only a warm note's chunks have words.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(chunks)s::integer[], %(starts)s::integer[],
                         %(ends)s::integer[], %(embeddings)b::vector[], %(words)s::text[])
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

-- name: read_note_records
SELECT n.id, n.tenant, n.workspace, n.namespace, n.user_id, n.agent_id, n.session_id, n.category, n.source, n.importance, n.tags, n.event_at, n.confidence, n.content,
       array_agg(c.text_start ORDER BY c.chunk) AS starts,
       array_agg(c.text_end ORDER BY c.chunk) AS ends,
       array_agg(c.embedding::real[] ORDER BY c.chunk) AS embeddings
FROM notes n
JOIN note_chunks c ON c.note_id = n.id
JOIN embedding_generations g ON g.generation = c.generation AND g.is_active
WHERE n.id = ANY(%(ids)s) AND n.deleted_at IS NULL AND n.temperature = 'warm'
GROUP BY n.id

-- name: list_note_ids
SELECT id FROM notes
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s) AND deleted_at IS NULL AND temperature = 'warm'
ORDER BY id
LIMIT %(limit)s

-- name: read_cold_records
-- Every existing note with its namespace; only one that is cold now has a record. An archived note has no row any
-- more, but the index that had it must still learn that it is gone.
SELECT n.id, n.tenant, n.workspace, n.namespace, n.user_id, n.agent_id, n.session_id, n.category, n.source,
       n.importance, n.tags, n.event_at, n.confidence, n.content,
       count(c.chunk) > 0 AS is_cold,
       array_agg(c.text_start ORDER BY c.chunk) AS starts,
       array_agg(c.text_end ORDER BY c.chunk) AS ends,
       array_agg(c.embedding::real[] ORDER BY c.chunk) FILTER (WHERE c.chunk IS NOT NULL) AS embeddings
FROM notes n
LEFT JOIN (note_chunks c JOIN embedding_generations g ON g.generation = c.generation AND g.is_active)
    ON c.note_id = n.id AND n.temperature = 'cold' AND n.deleted_at IS NULL
WHERE n.id = ANY(%(ids)s)
GROUP BY n.id
UNION ALL
-- An archived note has no row there any more; that it belongs in no index still has to be told to the one that had it.
SELECT id, tenant, workspace, namespace, user_id, NULL, NULL, NULL, NULL, NULL, '{}', archived_at, NULL, '', false,
       NULL, NULL, NULL
FROM archived_notes WHERE id = ANY(%(ids)s)
UNION ALL
-- Nor has an erased one, and one that was moved lies elsewhere: only the rows of the outbox say where it was.
(SELECT DISTINCT ON (o.memory_id, o.workspace, o.namespace)
        o.memory_id, o.tenant, o.workspace, o.namespace, NULL, NULL, NULL, NULL, NULL, NULL::float8, '{}'::text[],
        o.created_at, NULL::float8, '', false, NULL::int[], NULL::int[], NULL::real[]
 FROM outbox o
 WHERE o.seq = ANY(%(seqs)s::bigint[]) AND o.tenant IS NOT NULL
   AND NOT EXISTS (
       SELECT FROM notes n
       WHERE n.id = o.memory_id AND (n.workspace, n.namespace) = (o.workspace, o.namespace))
   AND NOT EXISTS (SELECT FROM archived_notes a WHERE a.id = o.memory_id)
 ORDER BY o.memory_id, o.workspace, o.namespace)

-- name: list_cold_ids
SELECT id FROM notes
WHERE tenant = %(tenant)s AND (%(after)s::uuid IS NULL OR id > %(after)s) AND deleted_at IS NULL AND temperature = 'cold'
ORDER BY id
LIMIT %(limit)s

-- name: enqueue_all_notes
INSERT INTO outbox (projection, memory_id)
SELECT 'notes', id FROM notes WHERE deleted_at IS NULL ORDER BY id

-- name: enqueue_all_cold
INSERT INTO outbox (projection, memory_id, tenant, workspace, namespace)
SELECT 'cold', id, tenant, workspace, namespace FROM notes WHERE deleted_at IS NULL AND temperature = 'cold' ORDER BY id

-- name: read_linked_notes
-- Warm or cold, each at its chunk nearest to the query.
SELECT DISTINCT ON (n.id)
       n.id, n.event_at, c.text_start, c.text_end, n.confidence, n.importance, n.user_id, n.last_hit_at, n.temperature,
       n.expires_at, coalesce(1 - (c.embedding <=> %(embedding)s::vector), 0)::float8 AS cosine
FROM notes n
JOIN note_chunks c ON c.note_id = n.id AND c.generation = %(generation)s
WHERE n.id = ANY(%(ids)s) AND n.deleted_at IS NULL
  AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
  AND n.weight >= %(min_weight)s
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR n.user_id IS NULL OR n.user_id = %(user_id)s)
  AND /*filters*/ true
ORDER BY n.id, cosine DESC, c.chunk

-- name: link_similar_notes
-- Each new note to the nearest others that its readers may see, all in one round trip.
INSERT INTO memory_links (
    from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
)
SELECT n.id, near.id, 'similar', 2, n.tenant, n.workspace, n.namespace, n.user_id, n.source, least(1, near.cosine),
       n.event_at
FROM notes n
JOIN note_chunks own ON own.note_id = n.id AND own.generation = %(generation)s AND own.chunk = 0
CROSS JOIN LATERAL (
    SELECT other.id, max(1 - found.distance) AS cosine
    FROM (
        SELECT c.note_id, c.embedding /*typed*/ <=> own.embedding /*typed*/ AS distance
        FROM note_chunks c
        WHERE c.tenant = n.tenant AND c.workspace = n.workspace AND c.namespace = n.namespace
          AND c.generation = %(generation)s AND c.tsv IS NOT NULL
        ORDER BY c.embedding /*typed*/ <=> own.embedding /*typed*/
        LIMIT 4 * %(fan_out)s
    ) found
    JOIN notes other ON other.id = found.note_id AND other.id <> n.id AND other.deleted_at IS NULL
                    AND (other.expires_at IS NULL OR other.expires_at > statement_timestamp())
                    AND (other.user_id IS NULL OR other.user_id = n.user_id)
    GROUP BY other.id
    ORDER BY 2 DESC, 1
    LIMIT %(fan_out)s
) near
WHERE n.id = ANY(%(ids)s) AND near.cosine >= %(min_similarity)s
ON CONFLICT DO NOTHING

-- name: count_unembedded_notes
-- Notes of everybody that are older than a while and lack vectors of a generation.
SELECT count(*) AS lacking
FROM notes n
WHERE n.deleted_at IS NULL AND n.updated_at < clock_timestamp() - %(grace)s::interval
  AND NOT EXISTS (SELECT FROM note_chunks c WHERE c.note_id = n.id AND c.generation = %(generation)s)

-- name: count_user_notes
-- The notes of a user, those made from them, and the archived ones.
SELECT (SELECT count(*) FROM notes WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS notes,
       (SELECT count(DISTINCT s.note_id) FROM note_sources s JOIN notes n ON n.id = s.source_id
        WHERE n.tenant = %(tenant)s AND n.user_id = %(user_id)s) AS derived,
       (SELECT count(*) FROM archived_notes WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS archived

-- name: find_present_notes
SELECT id FROM notes
WHERE id = ANY(%(ids)s) AND tenant = %(tenant)s AND deleted_at IS NULL
  AND (expires_at IS NULL OR expires_at > statement_timestamp())

-- name: read_found_notes
-- Rows of hits: a part of one statement. It asks again for all that the query may see, for a row may have
-- changed since a source ranked it.
SELECT 2, n.id, n.category, n.content, n.event_at, n.confidence, n.importance, n.user_id, n.agent_id, n.session_id,
       NULL, NULL, n.tags, n.metadata, n.source, n.last_hit_at, n.temperature, NULL, NULL::uuid, NULL::integer,
       n.expires_at, NULL::text, NULL::integer, NULL::text, n.speakers
FROM notes n
WHERE n.id = ANY(%(ids)s) AND n.deleted_at IS NULL
  AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
  AND n.weight >= %(min_weight)s
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR n.user_id IS NULL OR n.user_id = %(user_id)s)
  AND /*filters*/ true
