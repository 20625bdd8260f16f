-- Memories that hold one of these names in a row of words, for entities that are newer than they are.
SELECT DISTINCT told.id
FROM (
    SELECT found.id
    FROM unnest(%(keys)s::text[]) AS wanted (key)
    CROSS JOIN LATERAL phraseto_tsquery('lamina', wanted.key) AS asked
    CROSS JOIN LATERAL (
        (SELECT n.id
         FROM note_chunks c
         JOIN notes n ON n.id = c.note_id AND n.deleted_at IS NULL
             AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
         WHERE c.tenant = %(tenant)s AND c.workspace = %(workspace)s AND c.namespace = %(namespace)s AND c.tsv @@ asked
         LIMIT %(limit)s)
        UNION ALL
        (SELECT c.passage_id
         FROM passage_chunks c
         WHERE c.tenant = %(tenant)s AND c.workspace = %(workspace)s AND c.namespace = %(namespace)s AND c.tsv @@ asked
         LIMIT %(limit)s)
    ) found
    WHERE asked <> ''
    LIMIT %(limit_in_all)s
) told
ORDER BY told.id
