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
