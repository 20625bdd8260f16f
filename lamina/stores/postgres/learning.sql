-- name: find_untaught_runs
-- A page of runs that have ended and taught nothing yet, the earliest first: the first words of the user in each, and the
-- tools of all its turns.
SELECT t.id, t.user_id, t.agent_id, t.witness, t.succeeded, t.recorded_at, coalesce(opening.content, '') AS said,
       coalesce(done.tools, '{}') AS tools
FROM agent_turns t
LEFT JOIN LATERAL (
    SELECT p.last_position FROM agent_turns p
    WHERE p.tenant = t.tenant AND p.workspace = t.workspace AND p.namespace = t.namespace
      AND p.session_id = t.session_id AND p.user_id IS NOT DISTINCT FROM t.user_id AND p.succeeded IS NOT NULL
      AND (p.last_position, p.recorded_at, p.id) < (t.last_position, t.recorded_at, t.id)
    ORDER BY p.last_position DESC
    LIMIT 1
) before ON true
LEFT JOIN LATERAL (
    SELECT left(m.content, 4000) AS content FROM messages m
    WHERE m.tenant = t.tenant AND m.workspace = t.workspace AND m.namespace = t.namespace
      AND m.session_id = t.session_id AND m.user_id IS NOT DISTINCT FROM t.user_id AND m.role = 'user'
      AND NOT m.is_summary AND m.position > coalesce(before.last_position, 0) AND m.position <= t.last_position
    ORDER BY m.position
    LIMIT 1
) opening ON true
LEFT JOIN LATERAL (
    SELECT array_agg(tool.name ORDER BY w.last_position, w.recorded_at, w.id, tool.place) AS tools
    FROM agent_turns w, unnest(w.tools) WITH ORDINALITY AS tool (name, place)
    WHERE w.tenant = t.tenant AND w.workspace = t.workspace AND w.namespace = t.namespace
      AND w.session_id = t.session_id AND w.user_id IS NOT DISTINCT FROM t.user_id
      AND w.last_position > coalesce(before.last_position, 0) AND w.last_position <= t.last_position
) done ON true
WHERE t.tenant = %(tenant)s AND t.workspace = %(workspace)s AND t.namespace = %(namespace)s
  AND t.succeeded IS NOT NULL AND t.learnt_at IS NULL
  AND (%(after_at)s::timestamptz IS NULL OR (t.recorded_at, t.id) > (%(after_at)s, %(after_id)s::uuid))
ORDER BY t.recorded_at, t.id
LIMIT %(limit)s

-- name: find_learnt
-- The learnt procedures nearest to each run, whatever their state. OFFSET 0 keeps it from the vector index, which holds
-- those of all scopes.
SELECT run.id AS run_id, near.*
FROM unnest(%(ids)s::uuid[], %(embeddings)b::vector[]) AS run (id, embedding)
CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT p.id, p.user_id, p.trigger, p.metadata,
               CASE WHEN p.generation = %(generation)s THEN 1 - (p.embedding <=> run.embedding)
                    ELSE (SELECT 1 - (o.embedding <=> run.embedding) FROM procedure_embeddings o
                          WHERE o.procedure_id = p.id AND o.generation = %(generation)s
                            AND o.text_hash = sha256_of(p.trigger)) END AS similarity
        FROM procedures p
        WHERE p.tenant = %(tenant)s AND p.workspace = %(workspace)s AND p.namespace = %(namespace)s
          AND p.is_learnt AND p.deleted_at IS NULL
        OFFSET 0
    ) compared
    WHERE similarity >= %(min_similarity)s
    ORDER BY similarity DESC, id
    LIMIT %(most)s
) near

-- name: lock_runs
SELECT id FROM agent_turns WHERE id = ANY(%(ids)s) AND learnt_at IS NULL ORDER BY id FOR UPDATE

-- name: find_live_procedures
SELECT id FROM procedures WHERE id = ANY(%(ids)s) AND deleted_at IS NULL

-- name: mark_learnt
UPDATE agent_turns t SET learnt_at = %(now)s, procedure_id = taught.procedure_id
FROM unnest(%(ids)s::uuid[], %(procedures)s::uuid[]) AS taught (id, procedure_id)
WHERE t.id = taught.id
