-- name: erase_user_notes
-- Some of a user's notes, deleted and merged ones included, locked in the order of ids.
SELECT id, workspace, namespace FROM notes
WHERE tenant = %(tenant)s AND user_id = %(user_id)s
ORDER BY id
LIMIT %(limit)s
FOR UPDATE

-- name: erase_derived_notes
-- What was made from these notes, however indirectly, hidden notes included.
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
-- For good: versions, chunks and sources go with the rows, and what a run could bring back.
WITH gone AS (
    DELETE FROM notes WHERE id = ANY(%(ids)s) AND tenant = %(tenant)s RETURNING id
)
DELETE FROM job_changes j USING gone WHERE j.row_id = gone.id

-- name: erase_user_messages
WITH page AS (
    SELECT id FROM messages
    WHERE tenant = %(tenant)s AND user_id = %(user_id)s
    ORDER BY id
    LIMIT %(limit)s
    FOR UPDATE
), gone AS (
    DELETE FROM messages m USING page WHERE m.id = page.id
    RETURNING m.id, m.workspace, m.namespace
), kept AS (
    DELETE FROM job_changes j USING gone WHERE j.row_id = gone.id
)
SELECT id, workspace, namespace FROM gone

-- name: erase_user_passages
WITH page AS (
    SELECT p.id, p.document_id, d.workspace, d.namespace
    FROM documents d JOIN passages p ON p.document_id = d.id
    WHERE d.tenant = %(tenant)s AND d.user_id = %(user_id)s
    ORDER BY p.id
    LIMIT %(limit)s
    FOR UPDATE OF p
), gone AS (
    DELETE FROM passages p USING page WHERE p.id = page.id
    RETURNING p.id, page.workspace, page.namespace
)
SELECT id, workspace, namespace FROM gone

-- name: erase_user_documents
-- Those of a user's documents whose passages are gone.
DELETE FROM documents d
WHERE tenant = %(tenant)s AND user_id = %(user_id)s
  AND NOT EXISTS (SELECT FROM passages p WHERE p.document_id = d.id)
RETURNING id, workspace, namespace

-- name: erase_user_profiles
WITH versions AS (
    DELETE FROM profile_versions WHERE tenant = %(tenant)s AND user_id = %(user_id)s
)
DELETE FROM profiles WHERE tenant = %(tenant)s AND user_id = %(user_id)s
RETURNING workspace, namespace

-- name: erase_user_statements
-- What a user stated for himself alone, of which no memory is left.
DELETE FROM edge_evidence v USING edges e
WHERE e.id = v.edge_id AND e.tenant = %(tenant)s AND v.user_id = %(user_id)s
RETURNING e.id AS edge_id, e.from_id, e.to_id, e.workspace, e.namespace

-- name: user_left
-- What there is of a user, looked for again.
SELECT (SELECT count(*) FROM notes WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS notes,
       (SELECT count(DISTINCT s.note_id) FROM note_sources s JOIN notes n ON n.id = s.source_id
        WHERE n.tenant = %(tenant)s AND n.user_id = %(user_id)s) AS derived,
       (SELECT count(*) FROM messages WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS messages,
       (SELECT count(*) FROM documents WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS documents,
       (SELECT count(*) FROM profiles WHERE tenant = %(tenant)s AND user_id = %(user_id)s)
       + (SELECT count(*) FROM profile_versions WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS profiles,
       (SELECT count(*) FROM memory_links WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS links,
       (SELECT count(*) FROM edge_evidence v JOIN edges e ON e.id = v.edge_id
        WHERE e.tenant = %(tenant)s AND v.user_id = %(user_id)s) AS evidence,
       (SELECT count(*) FROM responses WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS responses,
       (SELECT count(*) FROM archived_notes WHERE tenant = %(tenant)s AND user_id = %(user_id)s) AS archived
