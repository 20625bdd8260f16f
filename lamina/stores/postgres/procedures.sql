-- fragment: columns
id, workspace, namespace, agent_id, trigger, action, tags, metadata, source, strength, successes, failures, created_at,
updated_at, last_used_at, state, is_learnt, is_private

-- name: insert_procedure
-- An equal row is returned as it is: the update waits for a deletion in progress. A procedure that two users wrote is
-- no one's.
INSERT INTO procedures (
    id, tenant, workspace, namespace, user_id, agent_id, trigger, trigger_key, action, content_hash, tags, metadata, source,
    strength, tsv, generation, embedding, created_at, updated_at, state, is_learnt, is_private
) VALUES (
    %(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s, %(agent_id)s, %(trigger)s, %(trigger_key)s, %(action)s,
    %(content_hash)s, %(tags)s, %(metadata)s, %(source)s, %(strength)s, to_tsvector('lamina', %(words)s),
    %(generation)s, %(embedding)s, %(now)s, %(now)s, %(state)s, %(is_learnt)s, %(is_private)s
)
ON CONFLICT (tenant, workspace, namespace, content_hash) WHERE deleted_at IS NULL
DO UPDATE SET user_id = CASE WHEN procedures.user_id = excluded.user_id THEN excluded.user_id END,
              state = CASE WHEN excluded.is_learnt THEN procedures.state ELSE excluded.state END,
              is_private = procedures.is_private AND excluded.is_private,
              is_decided = procedures.is_decided OR NOT excluded.is_learnt
RETURNING id

-- name: erase_user_procedures
WITH page AS (
    SELECT id FROM procedures
    WHERE tenant = %(tenant)s AND user_id = %(user_id)s
    ORDER BY id
    LIMIT %(limit)s
    FOR UPDATE
)
DELETE FROM procedures p USING page WHERE p.id = page.id
RETURNING p.id, p.workspace, p.namespace

-- name: count_user_procedures
SELECT count(*) AS procedures FROM procedures WHERE tenant = %(tenant)s AND user_id = %(user_id)s

-- name: get_procedure_for_update
SELECT /*columns*/ FROM procedures
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL
FOR UPDATE

-- name: update_procedure
UPDATE procedures
SET trigger = %(trigger)s, action = %(action)s, content_hash = %(content_hash)s, tags = %(tags)s,
    metadata = %(metadata)s, updated_at = %(now)s
WHERE id = %(id)s
RETURNING /*columns*/

-- name: index_procedure
UPDATE procedures
SET trigger_key = %(trigger_key)s, tsv = to_tsvector('lamina', %(words)s), generation = %(generation)s,
    embedding = %(embedding)s
WHERE id = %(id)s

-- name: delete_procedure
UPDATE procedures SET deleted_at = %(now)s
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL
RETURNING workspace, namespace

-- name: insert_outcome
INSERT INTO procedure_outcomes (id, procedure_id, run, succeeded, comment, agent_id, reported_at)
VALUES (%(id)s, %(procedure_id)s, %(run)s, %(succeeded)s, %(comment)s, %(agent_id)s, %(now)s)
ON CONFLICT (procedure_id, run) DO NOTHING

-- name: count_report
INSERT INTO procedure_witnesses AS w (procedure_id, witness, successes, failures)
VALUES (%(id)s, %(witness)s, %(succeeded)s::boolean::integer, (NOT %(succeeded)s::boolean)::integer)
ON CONFLICT (procedure_id, witness) DO UPDATE
SET successes = w.successes + excluded.successes, failures = w.failures + excluded.failures

-- name: read_reports
-- And of those who voted, which are no outcomes: all of them together are as one witness.
SELECT successes, failures, false AS are_votes FROM procedure_witnesses WHERE procedure_id = %(id)s
UNION ALL
SELECT useful, wrong, true FROM feedback WHERE memory_id = %(id)s

-- name: get_outcome
SELECT succeeded FROM procedure_outcomes WHERE procedure_id = %(procedure_id)s AND run = %(run)s

-- name: reinforce_procedure
UPDATE procedures
SET successes = %(successes)s, failures = %(failures)s, strength = %(strength)s, last_used_at = %(now)s
WHERE id = %(id)s
RETURNING /*columns*/

-- name: set_strength
UPDATE procedures SET strength = %(strength)s WHERE id = %(id)s

-- name: get_procedure
SELECT /*columns*/ FROM procedures
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL

-- name: list_procedures
SELECT /*columns*/ FROM procedures p
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND p.state = 'active' AND (NOT p.is_private OR p.user_id = %(user_id)s)
  AND (created_at, id) < (coalesce(%(after_time)s::timestamptz, 'infinity'),
                       coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
  AND /*filters*/ true
ORDER BY created_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s

-- name: list_learnt_procedures
SELECT /*columns*/ FROM procedures
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND is_learnt AND state = %(state)s
  AND (created_at, id) < (coalesce(%(after_time)s::timestamptz, 'infinity'),
                       coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY created_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s

-- name: share_procedure
UPDATE procedures SET user_id = NULL, is_private = false WHERE id = %(id)s

-- name: decide_procedure
UPDATE procedures
SET state = %(state)s, is_decided = true, is_private = is_private AND %(state)s <> 'active', updated_at = %(now)s
WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL
RETURNING /*columns*/

-- name: set_learnt_state
UPDATE procedures SET state = CASE WHEN is_decided THEN state ELSE %(state)s END WHERE id = %(id)s
RETURNING state

-- name: list_outcomes
SELECT id, run, succeeded, comment, agent_id, reported_at
FROM procedure_outcomes
WHERE procedure_id = %(procedure_id)s
  AND (reported_at, id) < (coalesce(%(after_time)s::timestamptz, 'infinity'),
                       coalesce(%(after_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY reported_at DESC, id DESC
LIMIT %(limit)s OFFSET %(offset)s

-- name: search_procedures
-- Candidates, and the comparison of each with the question; at least one row, with the number of procedures in the scope
-- as far as they were counted.
WITH asked AS (
    SELECT tsvector_to_array(to_tsvector('lamina', %(words)s)) AS words,
           replace(plainto_tsquery('lamina', %(words)s)::text, '&', '|')::tsquery AS any_word
), sized AS MATERIALIZED (
    /*sized*/
), candidates AS (
    /*candidates*/
)
SELECT p.id, p.workspace, p.namespace, p.agent_id, p.trigger, p.action, p.tags, p.metadata, p.source, p.strength,
       p.successes, p.failures, p.created_at, p.updated_at, p.last_used_at, p.state, p.is_learnt, p.is_private,
       length(p.tsv) AS trigger_words, cardinality(asked.words) AS asked_words,
       (SELECT count(*) FROM unnest(tsvector_to_array(p.tsv)) AS word WHERE word = ANY(asked.words)) AS shared_words,
       CASE WHEN p.generation = %(generation)s THEN 1 - (p.embedding <=> %(embedding)s::vector)
            ELSE (SELECT 1 - (o.embedding <=> %(embedding)s::vector)
                  FROM procedure_embeddings o
                  WHERE o.procedure_id = p.id AND o.generation = %(generation)s
                    AND o.text_hash = sha256_of(p.trigger)) END AS cosine,
       sized.procedures AS of_scope
FROM sized
CROSS JOIN asked
LEFT JOIN (candidates JOIN procedures p ON p.id = candidates.id) ON true

-- name: count_procedures
-- A part of search_procedures: how many the scope holds, one more than are compared at most.
SELECT count(*) AS procedures
FROM (
    SELECT FROM procedures p
    WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
      AND p.deleted_at IS NULL
    LIMIT %(most_compared)s + 1
) counted

-- name: procedures_of_scope
-- A part of search_procedures: all of a scope that holds few.
SELECT p.id
FROM procedures p
WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s AND p.deleted_at IS NULL
  AND (SELECT procedures FROM sized) <= %(most_compared)s
  AND p.state = 'active' AND (NOT p.is_private OR p.user_id = %(user_id)s)
  AND /*filters*/ true

-- name: procedures_by_stage
-- A part of search_procedures: candidates of each stage by its own index.
(SELECT p.id
 FROM procedures p
 WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
   AND p.deleted_at IS NULL
   AND p.trigger_key = ANY(%(key_prefixes)s)
   AND p.state = 'active' AND (NOT p.is_private OR p.user_id = %(user_id)s)
   AND /*filters*/ true
 ORDER BY length(p.trigger_key) DESC, p.strength DESC
 LIMIT %(candidates)s)
UNION
(SELECT p.id
 FROM procedures p
 WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
   AND p.deleted_at IS NULL
   -- Every key that goes on after this one and a space, "!" being what follows a space.
   AND p.trigger_key ~>=~ (%(key)s::text || ' ') AND p.trigger_key ~<~ (%(key)s::text || '!')
   AND p.state = 'active' AND (NOT p.is_private OR p.user_id = %(user_id)s)
   AND /*filters*/ true
 ORDER BY length(p.trigger_key), p.strength DESC
 LIMIT %(candidates)s)
UNION
(SELECT near.id
 FROM asked
 -- A frequent word is in very many triggers: a rough rank in C leaves few of them to compare word by word.
 CROSS JOIN LATERAL (
     SELECT p.id, p.tsv, p.strength
     FROM procedures p
     WHERE p.tsv @@ asked.any_word
       AND p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
       AND p.deleted_at IS NULL
       AND p.state = 'active' AND (NOT p.is_private OR p.user_id = %(user_id)s)
       AND /*filters*/ true
     ORDER BY ts_rank(p.tsv, asked.any_word, 1) DESC, p.strength DESC
     LIMIT 10 * %(candidates)s
 ) AS near
 CROSS JOIN LATERAL (
     SELECT count(*) AS shared FROM unnest(tsvector_to_array(near.tsv)) AS word WHERE word = ANY(asked.words)
 ) AS c
 ORDER BY c.shared >= least(length(near.tsv), cardinality(asked.words)) DESC,
          c.shared::float8 / (length(near.tsv) + cardinality(asked.words)) DESC, near.strength DESC
 LIMIT %(candidates)s)
UNION
(SELECT p.id
 FROM procedures p
 WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
   AND p.deleted_at IS NULL AND p.generation = %(generation)s AND %(embedding)s::vector IS NOT NULL
   AND p.state = 'active' AND (NOT p.is_private OR p.user_id = %(user_id)s)
   AND /*filters*/ true
 ORDER BY p.embedding /*typed*/ <=> %(embedding)s::vector /*typed*/
 LIMIT %(candidates)s)
UNION
-- Those that were written with another model have this generation's vector beside the row.
(SELECT p.id
 FROM procedure_embeddings o
 JOIN procedures p ON p.id = o.procedure_id
 WHERE o.tenant = %(tenant)s AND o.workspace = %(workspace)s AND o.namespace = %(namespace)s
   AND o.generation = %(generation)s AND p.generation <> %(generation)s AND o.text_hash = sha256_of(p.trigger)
   AND p.deleted_at IS NULL AND %(embedding)s::vector IS NOT NULL
   AND p.state = 'active' AND (NOT p.is_private OR p.user_id = %(user_id)s)
   AND /*filters*/ true
 ORDER BY o.embedding /*typed*/ <=> %(embedding)s::vector /*typed*/
 LIMIT %(candidates)s)

-- name: find_unembedded_procedures
-- By id. OFFSET 0: as in find_unembedded_messages.
SELECT p.id, sha256_of(p.trigger) AS guard, p.trigger
FROM procedures p
WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s AND p.deleted_at IS NULL
  AND (%(after)s::uuid IS NULL OR p.id > %(after)s)
  AND p.generation IS DISTINCT FROM %(generation)s::smallint
  AND (NOT EXISTS (SELECT FROM procedure_embeddings o
                   WHERE o.procedure_id = p.id AND o.generation = %(generation)s AND o.text_hash = sha256_of(p.trigger)
                   OFFSET 0)
       OR EXISTS (SELECT FROM refused_texts f WHERE f.generation = %(generation)s AND f.id = p.id))
ORDER BY p.id
LIMIT %(limit)s

-- name: embed_procedures
-- For procedures with the same trigger. A procedure that was written with this generation's model has the vector in
-- its row.
WITH made AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(guards)s::bytea[], %(embeddings)b::vector[]) AS m (id, guard, embedding)
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
WHERE procedure_embeddings.text_hash <> excluded.text_hash
RETURNING procedure_id AS id

-- name: count_unembedded_procedures
-- Procedures of everybody that are older than a while and lack a vector of a generation.
SELECT count(*) AS lacking
FROM procedures p
WHERE p.deleted_at IS NULL AND p.updated_at < clock_timestamp() - %(grace)s::interval AND p.generation <> %(generation)s
  AND NOT EXISTS (SELECT FROM procedure_embeddings o
                  WHERE o.procedure_id = p.id AND o.generation = %(generation)s AND o.text_hash = sha256_of(p.trigger))

-- name: find_present_procedures
SELECT id FROM procedures WHERE id = ANY(%(ids)s) AND tenant = %(tenant)s AND deleted_at IS NULL

-- name: read_found_procedures
-- Rows of hits: a part of one statement. It asks again for all that the query may see, for a row may have
-- changed since a source ranked it.
SELECT 5, p.id, 'procedure', p.action, p.created_at, 1.0, p.strength, NULL, p.agent_id, NULL, NULL, NULL, p.tags,
       p.metadata, p.source, p.last_used_at, 'warm', NULL, NULL::uuid, NULL::integer, NULL::timestamptz, NULL,
       NULL::integer, p.trigger, NULL::text[]
FROM procedures p
WHERE p.id = ANY(%(ids)s) AND p.deleted_at IS NULL
  AND p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
  AND p.state = 'active' AND (NOT p.is_private OR p.user_id = %(user_id)s)
  AND /*filters*/ true
