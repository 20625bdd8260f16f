-- Metadata may hold a speaker that a writer made up: of the notes that are there, those have one whose message has that
-- name, is of the same user, and was stored when they were. Apart from the column, whose lock readers would wait for.
UPDATE notes n SET speakers = ARRAY[m.name]
FROM messages m
WHERE n.version = 1 AND n.speakers IS NULL
  AND m.id = CASE WHEN n.source ~ '^message:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
                  THEN substr(n.source, 9)::uuid END
  AND (m.tenant, m.workspace, m.namespace, m.session_id) = (n.tenant, n.workspace, n.namespace, n.session_id)
  AND m.user_id IS NOT DISTINCT FROM n.user_id
  AND m.created_at BETWEEN n.created_at - interval '10 minutes' AND n.created_at + interval '10 minutes'
  AND m.name = n.metadata ->> 'speaker';
