-- name: read_shared_links
-- Edges that everybody may see for good: with shared evidence that is neither of a deleted note nor of one that
-- expires. The evidence of a merged note counts, for its survivor says the same.
SELECT e.from_id, e.to_id
FROM edges e
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s
  AND e.type <> %(type)s
  AND EXISTS (
      SELECT FROM edge_evidence v LEFT JOIN notes n ON n.id = v.memory_id
      WHERE v.edge_id = e.id AND v.user_id IS NULL AND n.expires_at IS NULL
        AND (n.deleted_at IS NULL OR n.merged_into IS NOT NULL))
ORDER BY e.id

-- name: read_related_edges
-- All edges of the type, and whether an inference is among the evidence of each.
SELECT e.id, e.from_id, e.to_id,
       EXISTS (SELECT FROM edge_evidence v WHERE v.edge_id = e.id AND v.source = %(source)s AND v.memory_id IS NULL
               AND v.user_id IS NULL) AS is_inferred
FROM edges e
WHERE e.tenant = %(tenant)s AND e.workspace = %(workspace)s AND e.namespace = %(namespace)s AND e.type = %(type)s
ORDER BY e.id

-- name: delete_inferences
-- Evidence without a memory. Edges that are left without evidence are deleted afterwards (prune_evidence).
DELETE FROM edge_evidence v USING edges e
WHERE v.edge_id = ANY(%(ids)s) AND v.source = %(source)s AND v.memory_id IS NULL AND v.user_id IS NULL
  AND e.id = v.edge_id
RETURNING e.id, e.from_id, e.to_id, e.tenant, e.workspace, e.namespace

-- name: insert_inferred_edges
-- With evidence of their own. An edge that exists stays as it is.
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
