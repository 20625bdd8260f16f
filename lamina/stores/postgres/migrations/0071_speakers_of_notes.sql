-- Who said a note that was drawn from messages, as these name them; null: nobody, or somebody without a name. Metadata may
-- hold a speaker that a writer made up: of the notes that are there, those have one whose message has that name, and was
-- stored when they were.
ALTER TABLE notes ADD COLUMN speakers text[];
UPDATE notes n SET speakers = ARRAY[m.name]
FROM messages m
WHERE n.source LIKE 'message:%' AND n.source = 'message:' || m.id AND n.version = 1
  AND (m.tenant, m.workspace, m.namespace, m.session_id) = (n.tenant, n.workspace, n.namespace, n.session_id)
  AND m.created_at BETWEEN n.created_at - interval '10 minutes' AND n.created_at + interval '10 minutes'
  AND m.name = n.metadata ->> 'speaker';
