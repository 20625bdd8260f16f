-- What stands in a session, whoever may read it, in its order: a summary right after where it ends.
SELECT id, position, user_id, agent_id, swarm_id, role, name, content, content_hash, occurred_at, is_summary,
       CASE WHEN is_summary THEN metadata END AS metadata
FROM messages
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s
  AND compacted_at IS NULL
ORDER BY position, is_summary, id
