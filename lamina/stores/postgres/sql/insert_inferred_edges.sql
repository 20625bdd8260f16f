-- Edges that nobody told, with the evidence that says so; what is linked that way already stays as it is.
WITH told AS (
    SELECT i.id, i.from_id, i.to_id, i.strength
    FROM unnest(%(ids)s::uuid[], %(from_ids)s::uuid[], %(to_ids)s::uuid[], %(strengths)s::float8[])
         AS i (id, from_id, to_id, strength)
    JOIN entities f ON f.id = i.from_id AND f.tenant = %(tenant)s AND f.workspace = %(workspace)s
                   AND f.namespace = %(namespace)s
    JOIN entities t ON t.id = i.to_id AND t.tenant = %(tenant)s AND t.workspace = %(workspace)s
                   AND t.namespace = %(namespace)s
), made AS (
    INSERT INTO edges (
        id, tenant, workspace, namespace, from_id, to_id, type, strength, confidence, first_seen_at, last_seen_at)
    SELECT id, %(tenant)s, %(workspace)s, %(namespace)s, from_id, to_id, %(type)s, strength, %(confidence)s,
           %(moment)s, %(moment)s
    FROM told
    ORDER BY from_id, to_id
    ON CONFLICT (from_id, to_id, type) DO NOTHING
    RETURNING id, from_id, strength
), backed AS (
    INSERT INTO edge_evidence (edge_id, source, memory_id, user_id, strength, confidence, seen_at)
    SELECT id, %(source)s, NULL, NULL, strength, %(confidence)s, %(moment)s FROM made
), kept AS (
    INSERT INTO job_changes (run_id, relation, row_id, before, after)
    SELECT %(run_id)s, 'inferred', id, '{}', '{}' FROM made WHERE %(run_id)s::uuid IS NOT NULL
    ON CONFLICT DO NOTHING
)
SELECT id, from_id FROM made
