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
