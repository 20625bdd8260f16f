-- Notes that may be consolidated, a page in the order of ids, each with its first vector: no summary or other derived
-- note, none that ends by itself, and none of which a consolidated note was made already.
SELECT n.id, n.user_id, n.event_at, c.embedding::real[] AS embedding
FROM notes n
JOIN note_chunks c ON c.note_id = n.id AND c.chunk = 0
JOIN embedding_generations g ON g.generation = c.generation AND g.is_active
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND n.expires_at IS NULL AND n.created_at < %(moment)s
  AND (%(after)s::uuid IS NULL OR n.id > %(after)s)
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)
  AND NOT EXISTS (SELECT FROM note_sources s JOIN notes m ON m.id = s.note_id
                  WHERE s.source_id = n.id AND m.source = %(source)s AND m.deleted_at IS NULL)
ORDER BY n.id
LIMIT %(limit)s
