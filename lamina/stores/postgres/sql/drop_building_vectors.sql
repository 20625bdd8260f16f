-- All vectors that an area has of a generation that is still being built.
WITH building AS (
    SELECT generation FROM embedding_generations WHERE generation = %(generation)s AND state = 'building'
), messages_gone AS (
    DELETE FROM message_chunks c USING building
    WHERE c.generation = building.generation AND (%(tenant)s::text IS NULL OR c.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR c.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR c.namespace = %(namespace)s)
    RETURNING c.message_id AS id
), compacted_gone AS (
    DELETE FROM compacted_chunks c USING building
    WHERE c.generation = building.generation AND (%(tenant)s::text IS NULL OR c.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR c.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR c.namespace = %(namespace)s)
    RETURNING c.message_id
), notes_gone AS (
    DELETE FROM note_chunks c USING building
    WHERE c.generation = building.generation AND (%(tenant)s::text IS NULL OR c.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR c.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR c.namespace = %(namespace)s)
    RETURNING c.note_id
), passages_gone AS (
    DELETE FROM passage_chunks c USING building
    WHERE c.generation = building.generation AND (%(tenant)s::text IS NULL OR c.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR c.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR c.namespace = %(namespace)s)
    RETURNING c.passage_id
), entities_gone AS (
    DELETE FROM entity_embeddings o USING building
    WHERE o.generation = building.generation AND (%(tenant)s::text IS NULL OR o.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR o.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR o.namespace = %(namespace)s)
    RETURNING o.entity_id
), procedures_gone AS (
    DELETE FROM procedure_embeddings o USING building
    WHERE o.generation = building.generation AND (%(tenant)s::text IS NULL OR o.tenant = %(tenant)s)
      AND (%(workspace)s::text IS NULL OR o.workspace = %(workspace)s)
      AND (%(namespace)s::text IS NULL OR o.namespace = %(namespace)s)
    RETURNING o.procedure_id
)
SELECT count(*) AS rows FROM (
    SELECT id FROM messages_gone UNION SELECT message_id FROM compacted_gone UNION SELECT note_id FROM notes_gone
    UNION SELECT passage_id FROM passages_gone UNION SELECT entity_id FROM entities_gone
    UNION SELECT procedure_id FROM procedures_gone
) gone
