-- Memories that hold one of these names in a row of words, for entities that are newer than they are.
SELECT DISTINCT ON (told.id) told.*
FROM unnest(%(keys)s::text[]) AS wanted (key)
CROSS JOIN LATERAL phraseto_tsquery('lamina', wanted.key) AS asked
CROSS JOIN LATERAL (
    (SELECT n.id, 2 AS tier, n.content, n.user_id, n.source, n.event_at AS seen_at
     FROM note_chunks c
     JOIN notes n ON n.id = c.note_id AND n.deleted_at IS NULL
     WHERE c.tenant = %(tenant)s AND c.workspace = %(workspace)s AND c.namespace = %(namespace)s AND c.tsv @@ asked
     LIMIT %(limit)s)
    UNION ALL
    (SELECT p.id, 6, p.content, p.user_id, d.source, d.event_at
     FROM passage_chunks c
     JOIN passages p ON p.id = c.passage_id
     JOIN documents d ON d.id = p.document_id
     WHERE c.tenant = %(tenant)s AND c.workspace = %(workspace)s AND c.namespace = %(namespace)s AND c.tsv @@ asked
     LIMIT %(limit)s)
) told
WHERE asked <> ''
ORDER BY told.id
