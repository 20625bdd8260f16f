-- name: find_large_sessions
-- By id. A token takes a byte at least, so fewer bytes than tokens rule a session out.
SELECT s.session_id
FROM sessions s
CROSS JOIN LATERAL (
    SELECT sum(octet_length(m.content) + coalesce(octet_length(m.name) + 2, 0)) AS bytes
    FROM messages m
    WHERE m.tenant = s.tenant AND m.workspace = s.workspace AND m.namespace = s.namespace
      AND m.session_id = s.session_id AND m.compacted_at IS NULL
) live
WHERE s.tenant = %(tenant)s AND s.workspace = %(workspace)s AND s.namespace = %(namespace)s
  AND (%(after)s::text IS NULL OR s.session_id > %(after)s)
  AND live.bytes >= %(least_tokens)s
ORDER BY s.session_id
LIMIT %(limit)s

-- name: read_live_messages
-- For all readers, in the order of the session: a summary comes right after the last message that it stands for.
SELECT id, position, user_id, agent_id, swarm_id, role, name, content, content_hash, occurred_at, importance,
       is_summary, CASE WHEN is_summary THEN metadata END AS metadata
FROM messages
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s
  AND compacted_at IS NULL
ORDER BY position, is_summary, id

-- name: has_session
SELECT EXISTS (
    SELECT FROM sessions
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND session_id = %(session_id)s
) AS is_known

-- name: lock_live_messages
-- Live messages with the same text, locked in the order in which they are changed.
SELECT m.id
FROM unnest(%(ids)s::uuid[], %(hashes)s::bytea[]) AS wanted (id, content_hash)
JOIN messages m ON m.id = wanted.id AND m.content_hash = wanted.content_hash
WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s AND m.compacted_at IS NULL
ORDER BY m.id
FOR UPDATE OF m

-- name: insert_summaries
-- Also listed for the undo of the run.
WITH made AS (
    INSERT INTO messages (
        id, tenant, workspace, namespace, session_id, user_id, agent_id, swarm_id, position, role, name, content,
        content_hash, metadata, occurred_at, importance, created_at, is_summary)
    SELECT s.id, %(tenant)s, %(workspace)s, %(namespace)s, s.session_id, s.user_id, s.agent_id, s.swarm_id, s.position,
           'system', %(name)s, s.content, s.content_hash, s.metadata, s.occurred_at, s.importance,
           %(moment)s, true
    FROM unnest(%(ids)s::uuid[], %(sessions)s::text[], %(users)s::text[], %(agents)s::text[], %(swarms)s::text[],
                %(positions)s::bigint[], %(contents)b::text[], %(hashes)s::bytea[], %(metadata)b::json[],
                %(times)s::timestamptz[], %(importances)s::float8[])
         AS s (id, session_id, user_id, agent_id, swarm_id, position, content, content_hash, metadata, occurred_at,
               importance)
    RETURNING id
)
INSERT INTO job_changes (run_id, relation, row_id, before, after)
SELECT %(run_id)s, %(relation)s, id, '{}', '{}' FROM made WHERE %(run_id)s::uuid IS NOT NULL

-- name: delete_summaries
-- Summaries that stand for no message any more. One that another summary stands for stays.
DELETE FROM messages
WHERE id = ANY(%(ids)s) AND is_summary AND compacted_at IS NULL
RETURNING id, tenant, workspace, namespace
