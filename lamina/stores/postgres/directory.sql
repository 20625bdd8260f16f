-- name: list_workspaces
-- By their names: from one to the next by the key, however many namespaces each has.
WITH RECURSIVE names AS (
    SELECT (SELECT min(workspace) FROM epochs
            WHERE tenant = %(tenant)s AND workspace > coalesce(%(after_workspace)s::text, '') AND /*within*/ true) AS name
    UNION ALL
    SELECT (SELECT min(workspace) FROM epochs
            WHERE tenant = %(tenant)s AND workspace > names.name AND /*within*/ true)
    FROM names WHERE names.name IS NOT NULL
), places AS (
    SELECT name AS workspace FROM names WHERE name IS NOT NULL LIMIT %(limit)s
)
SELECT place.workspace, held.*, stored.*
FROM places place
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE namespace <> '') AS namespaces, max(written_at) AS written_at
    FROM (SELECT namespace, written_at FROM epochs
          WHERE tenant = %(tenant)s AND workspace = place.workspace AND /*within*/ true
          ORDER BY namespace LIMIT %(most)s) AS counted
) held
CROSS JOIN LATERAL (/*stored*/) stored
ORDER BY place.workspace

-- name: list_namespaces
-- Of a workspace, by their names.
WITH places AS (
    SELECT workspace, namespace, written_at FROM epochs
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace > coalesce(%(after_namespace)s::text, '')
      AND /*within*/ true
    ORDER BY namespace
    LIMIT %(limit)s
)
SELECT place.workspace, place.namespace, place.written_at, stored.*
FROM places place
CROSS JOIN LATERAL (/*stored*/) stored
ORDER BY place.namespace

-- name: count_place
-- Rows and bytes of a place, of each table no more than the most that are counted. In the order of an index: without
-- one, a limit that many rows seem to meet is planned as a scan of the table, for each place.
SELECT n.rows AS notes, m.rows AS messages, d.rows AS documents, p.rows AS procedures,
       n.bytes + m.bytes + d.bytes + p.bytes AS bytes
FROM (SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes
      FROM (SELECT pg_column_size(content) AS size FROM notes
            WHERE tenant = %(tenant)s AND workspace = place.workspace AND deleted_at IS NULL AND /*within*/ true
            ORDER BY namespace, id LIMIT %(most)s) counted) n,
     (SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes
      FROM (SELECT pg_column_size(content) AS size FROM messages
            WHERE tenant = %(tenant)s AND workspace = place.workspace AND /*within*/ true
            ORDER BY namespace, id LIMIT %(most)s) counted) m,
     (SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes
      FROM (SELECT pg_column_size(content) AS size FROM documents
            WHERE tenant = %(tenant)s AND workspace = place.workspace AND /*within*/ true
            ORDER BY namespace, event_at, id LIMIT %(most)s) counted) d,
     (SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes
      FROM (SELECT pg_column_size(trigger) + pg_column_size(action) AS size FROM procedures
            WHERE tenant = %(tenant)s AND workspace = place.workspace AND deleted_at IS NULL AND /*within*/ true
            ORDER BY namespace, id LIMIT %(most)s) counted) p

-- name: list_sessions
-- The one that was begun last first. Of a user: those with messages of theirs or of nobody.
WITH page AS (
    SELECT session_id, created_at FROM sessions s
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
      AND (created_at, session_id) < (coalesce(%(after_time)s::timestamptz, 'infinity'),
                                      coalesce(%(after_session)s::text, ''))
      AND (%(user_id)s::text IS NULL
           OR EXISTS (SELECT FROM messages m
                      WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
                        AND m.user_id = %(user_id)s AND m.session_id = s.session_id)
           OR EXISTS (SELECT FROM messages m
                      WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
                        AND m.user_id IS NULL AND m.session_id = s.session_id))
    ORDER BY created_at DESC, session_id DESC
    LIMIT %(limit)s
)
SELECT page.session_id, page.created_at, stored.*
FROM page
CROSS JOIN LATERAL (
    SELECT count(*) AS messages, coalesce(sum(size), 0)::bigint AS bytes, max(created_at) AS written_at
    FROM (SELECT pg_column_size(content) AS size, created_at FROM messages
          WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
            AND session_id = page.session_id AND NOT is_summary
            AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
          ORDER BY position DESC
          LIMIT %(most)s) counted
) stored
ORDER BY page.created_at DESC, page.session_id DESC

-- name: list_users
-- Users of a place by their names: from one to the next by the indexes, however much each wrote.
WITH RECURSIVE names AS (
    SELECT coalesce(%(after_user)s::text, '') AS name
    UNION ALL
    SELECT least(
        (SELECT min(user_id) FROM notes
         WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
           AND user_id > names.name AND (cardinality(%(names)s::text[]) = 0 OR user_id = ANY(%(names)s))),
        (SELECT min(user_id) FROM messages
         WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
           AND user_id > names.name AND (cardinality(%(names)s::text[]) = 0 OR user_id = ANY(%(names)s))),
        (SELECT min(user_id) FROM documents
         WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
           AND user_id > names.name AND (cardinality(%(names)s::text[]) = 0 OR user_id = ANY(%(names)s))),
        (SELECT min(user_id) FROM profiles
         WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
           AND user_id > names.name AND (cardinality(%(names)s::text[]) = 0 OR user_id = ANY(%(names)s))))
    FROM names WHERE names.name IS NOT NULL
), page AS (
    SELECT name FROM names WHERE name > coalesce(%(after_user)s::text, '') LIMIT %(limit)s
)
SELECT page.name, n.rows AS notes, m.rows AS messages, d.rows AS documents,
       n.bytes + m.bytes + d.bytes + coalesce(p.bytes, 0) AS bytes,
       greatest(n.written_at, m.written_at, d.written_at, p.written_at) AS written_at, p.version AS profile_version
FROM page
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes, max(updated_at) AS written_at
    FROM (SELECT pg_column_size(content) AS size, updated_at FROM notes
          WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
            AND user_id = page.name AND deleted_at IS NULL
          ORDER BY content_hash LIMIT %(most)s) counted
) n
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes, max(created_at) AS written_at
    FROM (SELECT pg_column_size(content) AS size, created_at FROM messages
          WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
            AND user_id = page.name AND NOT is_summary
          ORDER BY session_id LIMIT %(most)s) counted
) m
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes, max(updated_at) AS written_at
    FROM (SELECT pg_column_size(content) AS size, updated_at FROM documents
          WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
            AND user_id = page.name
          ORDER BY key LIMIT %(most)s) counted
) d
LEFT JOIN LATERAL (
    SELECT pg_column_size(document) AS bytes, updated_at AS written_at, version FROM profiles
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND user_id = page.name
) p ON true
ORDER BY page.name

-- name: list_agents
-- Agents of a place by their names, as users; those that have a memory profile in the workspace, too.
WITH RECURSIVE names AS (
    SELECT coalesce(%(after_agent)s::text, '') AS name
    UNION ALL
    SELECT least(
        (SELECT min(agent_id) FROM notes
         WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
           AND agent_id > names.name),
        (SELECT min(agent_id) FROM messages
         WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
           AND agent_id > names.name),
        (SELECT min(agent_id) FROM documents
         WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
           AND agent_id > names.name),
        (SELECT min(agent_id) FROM procedures
         WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
           AND agent_id > names.name),
        (SELECT min(agent_id) FROM memory_profiles
         WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND agent_id > names.name))
    FROM names WHERE names.name IS NOT NULL
), page AS (
    SELECT name FROM names WHERE name > coalesce(%(after_agent)s::text, '') LIMIT %(limit)s
)
SELECT page.name, n.rows AS notes, m.rows AS messages, d.rows AS documents, p.rows AS procedures,
       n.bytes + m.bytes + d.bytes + p.bytes AS bytes,
       greatest(n.written_at, m.written_at, d.written_at, p.written_at) AS written_at
FROM page
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes, max(updated_at) AS written_at
    FROM (SELECT pg_column_size(content) AS size, updated_at FROM notes
          WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
            AND agent_id = page.name AND deleted_at IS NULL
          ORDER BY id DESC LIMIT %(most)s) counted
) n
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes, max(created_at) AS written_at
    FROM (SELECT pg_column_size(content) AS size, created_at FROM messages
          WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
            AND agent_id = page.name
          ORDER BY id DESC LIMIT %(most)s) counted
) m
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes, max(updated_at) AS written_at
    FROM (SELECT pg_column_size(content) AS size, updated_at FROM documents
          WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
            AND agent_id = page.name
          ORDER BY id DESC LIMIT %(most)s) counted
) d
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS bytes, max(updated_at) AS written_at
    FROM (SELECT pg_column_size(trigger) + pg_column_size(action) AS size, updated_at FROM procedures
          WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
            AND agent_id = page.name AND deleted_at IS NULL
          ORDER BY id DESC LIMIT %(most)s) counted
) p
ORDER BY page.name
