-- What was written longer than a while ago and lacks vectors of a generation, of everybody. The ids of entities tell
-- their time (UUID version 7).
WITH since AS (
    SELECT at, (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid AS id
    FROM (SELECT clock_timestamp() - %(grace)s::interval AS at) AS moment
)
SELECT (SELECT count(*) FROM messages m
        WHERE m.created_at < since.at
          AND CASE WHEN m.compacted_at IS NULL
              THEN NOT EXISTS (SELECT FROM message_chunks c
                               WHERE c.message_id = m.id AND c.generation = %(generation)s)
              ELSE NOT EXISTS (SELECT FROM compacted_chunks c
                               WHERE c.message_id = m.id AND c.generation = %(generation)s) END) AS messages,
       (SELECT count(*) FROM notes n
        WHERE n.deleted_at IS NULL AND n.updated_at < since.at
          AND NOT EXISTS (SELECT FROM note_chunks c WHERE c.note_id = n.id AND c.generation = %(generation)s)) AS notes,
       (SELECT count(*) FROM passages p JOIN documents d ON d.id = p.document_id
        WHERE d.updated_at < since.at
          AND NOT EXISTS (SELECT FROM passage_chunks c
                          WHERE c.passage_id = p.id AND c.generation = %(generation)s)) AS passages,
       (SELECT count(*) FROM entities e
        WHERE e.id < since.id AND e.generation <> %(generation)s
          AND NOT EXISTS (SELECT FROM entity_embeddings o
                          WHERE o.entity_id = e.id AND o.generation = %(generation)s
                            AND o.text_hash = sha256_of(e.name))) AS entities,
       (SELECT count(*) FROM procedures p
        WHERE p.deleted_at IS NULL AND p.updated_at < since.at AND p.generation <> %(generation)s
          AND NOT EXISTS (SELECT FROM procedure_embeddings o
                          WHERE o.procedure_id = p.id AND o.generation = %(generation)s
                            AND o.text_hash = sha256_of(p.trigger))) AS procedures
FROM since
