-- Notes as they go to the archive. They are locked, and looked at again: one of them may have been made into something
-- else while this waited.
SELECT id, tenant, workspace, namespace, user_id, agent_id, session_id, swarm_id, category, content, content_hash,
       importance, confidence, tags, metadata, source, version, hits, event_at, last_hit_at, created_at, updated_at,
       temperature_changed_at, weight
FROM notes n
WHERE id = ANY(%(ids)s) AND temperature = 'cold' AND expires_at IS NULL
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.source_id = n.id)
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)
ORDER BY id
