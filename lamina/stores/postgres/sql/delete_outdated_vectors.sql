-- The vectors that these memories, entities and procedures have of generations that nobody reads any more.
WITH retired AS (
    SELECT generation FROM embedding_generations WHERE generation = ANY(%(generations)s) AND state = 'retired'
), messages_gone AS (
    DELETE FROM message_chunks c USING retired
    WHERE c.message_id = ANY(%(ids)s) AND c.generation = retired.generation AND c.tenant = %(tenant)s
    RETURNING c.message_id AS id
), compacted_gone AS (
    DELETE FROM compacted_chunks c USING retired
    WHERE c.message_id = ANY(%(ids)s) AND c.generation = retired.generation AND c.tenant = %(tenant)s
    RETURNING c.message_id
), notes_gone AS (
    DELETE FROM note_chunks c USING retired
    WHERE c.note_id = ANY(%(ids)s) AND c.generation = retired.generation AND c.tenant = %(tenant)s
    RETURNING c.note_id
), passages_gone AS (
    DELETE FROM passage_chunks c USING retired
    WHERE c.passage_id = ANY(%(ids)s) AND c.generation = retired.generation AND c.tenant = %(tenant)s
    RETURNING c.passage_id
), entities_gone AS (
    DELETE FROM entity_embeddings o USING retired
    WHERE o.entity_id = ANY(%(ids)s) AND o.generation = retired.generation AND o.tenant = %(tenant)s
    RETURNING o.entity_id
), procedures_gone AS (
    DELETE FROM procedure_embeddings o USING retired
    WHERE o.procedure_id = ANY(%(ids)s) AND o.generation = retired.generation AND o.tenant = %(tenant)s
    RETURNING o.procedure_id
)
SELECT id FROM messages_gone UNION SELECT message_id FROM compacted_gone UNION SELECT note_id FROM notes_gone
UNION SELECT passage_id FROM passages_gone UNION SELECT entity_id FROM entities_gone
UNION SELECT procedure_id FROM procedures_gone
