-- name: erase_user_notes
-- A page of a user's notes, deleted and merged ones too, locked by id.
SELECT id, workspace, namespace FROM notes
WHERE tenant = %(tenant)s AND user_id = %(user_id)s
ORDER BY id
LIMIT %(limit)s
FOR UPDATE

-- name: erase_derived_notes
-- Notes made from these, directly or not, hidden ones too.
WITH RECURSIVE made (id) AS (
    SELECT note_id FROM note_sources WHERE source_id = ANY(%(ids)s)
    UNION
    SELECT s.note_id FROM made m JOIN note_sources s ON s.source_id = m.id
)
SELECT n.id, n.workspace, n.namespace
FROM notes n JOIN made m ON m.id = n.id
WHERE n.tenant = %(tenant)s AND n.id <> ALL(%(ids)s)
ORDER BY n.id
FOR UPDATE OF n

-- name: erase_notes
-- Versions, chunks and sources are deleted with the rows; the recorded changes of job runs, too.
WITH gone AS (
    DELETE FROM notes WHERE id = ANY(%(ids)s) AND tenant = %(tenant)s RETURNING id
)
DELETE FROM job_changes j USING gone WHERE j.row_id = gone.id

-- name: erase_user_profiles
WITH versions AS (
    DELETE FROM profile_versions WHERE tenant = %(tenant)s AND user_id = %(user_id)s
)
DELETE FROM profiles WHERE tenant = %(tenant)s AND user_id = %(user_id)s
RETURNING workspace, namespace

-- name: erase_user_statements
-- Private evidence of a user that no memory stands behind.
DELETE FROM edge_evidence v USING edges e
WHERE e.id = v.edge_id AND e.tenant = %(tenant)s AND v.user_id = %(user_id)s
RETURNING e.id AS edge_id, e.from_id, e.to_id, e.workspace, e.namespace

-- name: is_empty_session
-- A part of the statements below. A renaming moves messages before their sessions: they may be under its other name.
NOT EXISTS (
    SELECT FROM messages m
    WHERE m.tenant = s.tenant AND m.workspace = s.workspace AND m.namespace = s.namespace
      AND m.session_id = s.session_id
) AND NOT EXISTS (
    SELECT FROM epochs e
    JOIN operations o ON o.id = e.renaming
    JOIN messages m ON m.tenant = s.tenant AND m.workspace IN (o.workspace, o.request ->> 'to_workspace')
     AND m.namespace IN (s.namespace, o.namespace, o.request ->> 'to_namespace') AND m.session_id = s.session_id
    WHERE e.tenant = s.tenant AND e.workspace = s.workspace AND e.namespace IN ('', s.namespace)
)

-- name: count_empty_sessions
SELECT count(*) AS sessions FROM sessions s
WHERE tenant = %(tenant)s AND created_at <= %(made_before)s
  AND /*is_empty*/ true

-- name: lock_empty_sessions
SELECT workspace, namespace, session_id FROM sessions s
WHERE tenant = %(tenant)s AND (%(made_before)s::timestamptz IS NULL OR created_at <= %(made_before)s)
  AND /*is_empty*/ true
ORDER BY workspace, namespace, session_id
LIMIT %(limit)s
FOR UPDATE OF s

-- name: delete_empty_sessions
DELETE FROM sessions s
USING unnest(%(workspace)s::text[], %(namespace)s::text[], %(session_id)s::text[]) AS e (workspace, namespace, session_id)
WHERE s.tenant = %(tenant)s AND s.workspace = e.workspace AND s.namespace = e.namespace AND s.session_id = e.session_id
  AND /*is_empty*/ true
RETURNING s.workspace, s.namespace

-- name: forget_bound_user
-- The name in the bounds of keys that open nothing any more; a bound of nobody would be none.
UPDATE api_keys SET users = array_replace(users, %(user_id)s, keyed_hash(%(tenant)s, %(user_id)s))
WHERE tenant = %(tenant)s AND %(user_id)s = ANY(users) AND (revoked_at IS NOT NULL OR expires_at <= now())

-- name: count_user_profiles
-- The profiles of a user, the responses and answers to them, their conversations, and their events, which no tier has.
SELECT (SELECT count(*) FROM profiles WHERE tenant = %(tenant)s AND user_id = %(user_id)s)
       + (SELECT count(*) FROM profile_versions WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS profiles,
       (SELECT count(*) FROM responses WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS responses,
       (SELECT count(*) FROM response_chains WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS response_chains,
       (SELECT count(*) FROM idempotency_keys
        WHERE tenant = %(tenant)s AND user_hash = keyed_hash(%(tenant)s, %(user_id)s)) AS idempotency_keys,
       (SELECT count(*) FROM trash WHERE tenant = %(tenant)s AND user_id = %(user_id)s)
       + (SELECT count(*) FROM discarded_evidence WHERE tenant = %(tenant)s AND user_id = %(user_id)s)
       + (SELECT count(*) FROM discarded_mentions WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS trash,
       (SELECT count(*) FROM operations
        WHERE tenant = %(tenant)s
          AND (user_id = %(user_id)s OR state = 'running' AND jsonb_path_exists(
              request::jsonb, '$.filters.** ? (@ == $user)', jsonb_build_object('user', %(user_id)s::text)
          ))) AS operations,
       (SELECT count(*) FROM events WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS events

-- name: erase_user_events
-- The row stays as a place at which a reader goes on.
UPDATE events
SET user_id = NULL, agent_id = NULL, session_id = NULL, memory_ids = '{}', facts = '{}'
WHERE tenant = %(tenant)s AND user_id = %(user_id)s

-- name: erase_user_chains
DELETE FROM response_chains WHERE tenant = %(tenant)s AND user_id = %(user_id)s

-- name: erase_user_idempotency_keys
DELETE FROM idempotency_keys WHERE tenant = %(tenant)s AND user_hash = keyed_hash(%(tenant)s, %(user_id)s)
