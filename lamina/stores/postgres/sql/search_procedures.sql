-- Candidates of each stage by its own index, then how each of them compares with what is asked.
WITH asked AS (
    SELECT tsvector_to_array(to_tsvector('lamina', %(words)s)) AS words,
           replace(plainto_tsquery('lamina', %(words)s)::text, '&', '|')::tsquery AS any_word
),
candidates AS (
    (SELECT p.id
     FROM procedures p
     WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
       AND p.deleted_at IS NULL
       AND p.trigger_key = ANY(%(key_prefixes)s)
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
       AND /*filters*/ true
     ORDER BY p.embedding <=> %(embedding)s::vector
     LIMIT %(candidates)s)
    UNION
    -- Those that were written with another model have this generation's vector beside the row.
    (SELECT p.id
     FROM procedure_embeddings o
     JOIN procedures p ON p.id = o.procedure_id
     WHERE o.tenant = %(tenant)s AND o.workspace = %(workspace)s AND o.namespace = %(namespace)s
       AND o.generation = %(generation)s AND p.generation <> %(generation)s AND o.text_hash = sha256_of(p.trigger)
       AND p.deleted_at IS NULL AND %(embedding)s::vector IS NOT NULL
       AND /*filters*/ true
     ORDER BY o.embedding <=> %(embedding)s::vector
     LIMIT %(candidates)s)
)
SELECT p.id, p.workspace, p.namespace, p.agent_id, p.trigger, p.action, p.tags, p.metadata, p.source, p.strength,
       p.successes, p.failures, p.created_at, p.updated_at, p.last_used_at,
       length(p.tsv) AS trigger_words, cardinality(asked.words) AS asked_words,
       (SELECT count(*) FROM unnest(tsvector_to_array(p.tsv)) AS word WHERE word = ANY(asked.words)) AS shared_words,
       CASE WHEN p.generation = %(generation)s THEN 1 - (p.embedding <=> %(embedding)s::vector)
            ELSE (SELECT 1 - (o.embedding <=> %(embedding)s::vector)
                  FROM procedure_embeddings o
                  WHERE o.procedure_id = p.id AND o.generation = %(generation)s
                    AND o.text_hash = sha256_of(p.trigger)) END AS cosine
FROM candidates
JOIN procedures p ON p.id = candidates.id
CROSS JOIN asked
