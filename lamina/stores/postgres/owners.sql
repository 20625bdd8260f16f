-- name: find_note_owners
-- Rows that are deleted but still there are found, too, of any kind.
SELECT id, workspace, namespace, user_id, agent_id FROM notes WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)
UNION ALL
SELECT id, workspace, namespace, user_id, NULL FROM archived_notes WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_archived_note_owners
SELECT id, workspace, namespace, user_id, NULL AS agent_id
FROM archived_notes WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_message_owners
SELECT id, workspace, namespace, user_id, agent_id FROM messages WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_document_owners
SELECT id, workspace, namespace, user_id, agent_id FROM documents WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_procedure_owners
SELECT id, workspace, namespace, CASE WHEN is_private THEN user_id END AS user_id, agent_id
FROM procedures WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_entity_owners
SELECT id, workspace, namespace, NULL AS user_id, NULL AS agent_id
FROM entities WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_edge_owners
SELECT id, workspace, namespace, NULL AS user_id, NULL AS agent_id
FROM edges WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_share_owners
SELECT id, from_workspace AS workspace, from_namespace AS namespace, NULL AS user_id, NULL AS agent_id
FROM shares WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_run_owners
SELECT id, workspace, namespace, NULL AS user_id, NULL AS agent_id
FROM job_runs WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_erasure_owners
-- Only a salted hash of the user is kept: one of these users, or else somebody, whom no key is bound to.
SELECT id, NULL AS workspace, NULL AS namespace,
       coalesce((SELECT name FROM unnest(%(users)s::text[]) AS tried (name)
                 WHERE sha256(user_salt || convert_to(name, 'UTF8')) = user_hash LIMIT 1), '') AS user_id,
       NULL AS agent_id
FROM erasures WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_webhook_owners
SELECT id, workspace, NULL AS namespace, NULL AS user_id, NULL AS agent_id
FROM webhooks WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_operation_owners
-- A complete renaming is a thing of the new name: bounds of keys have followed, and the old one may be another's.
SELECT id, CASE WHEN renamed.whole THEN request ->> 'to_workspace' ELSE workspace END AS workspace,
       CASE WHEN renamed.whole THEN request ->> 'to_namespace' ELSE namespace END AS namespace, user_id, agent_id
FROM operations, LATERAL (SELECT kind = 'rename_scope' AND state = 'complete' AS whole) renamed
WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_discarded_owners
-- Keys of these users write no procedure and delete no entity or fact, not even their user's own, and so restore none: to
-- them it is nobody's.
SELECT id, workspace, namespace,
       CASE WHEN kind IN ('procedure', 'entity', 'fact') AND user_id = ANY(%(users)s::text[]) THEN NULL ELSE user_id END AS user_id, agent_id
FROM trash WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)

-- name: find_memory_owners
-- Of any kind that a search returns. A passage is whose its document is.
SELECT 'note' AS kind, id, id AS whole_id, workspace, namespace, user_id, agent_id, NULL AS path
FROM notes WHERE tenant = %(tenant)s AND id = ANY(%(ids)s) AND deleted_at IS NULL
UNION ALL
SELECT 'note', id, id, workspace, namespace, user_id, NULL, NULL
FROM archived_notes WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)
UNION ALL
SELECT 'message', id, id, workspace, namespace, user_id, agent_id, NULL
FROM messages WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)
UNION ALL
SELECT 'document', id, id, workspace, namespace, user_id, agent_id, path
FROM documents WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)
UNION ALL
SELECT 'passage', p.id, d.id, d.workspace, d.namespace, d.user_id, d.agent_id, d.path
FROM passages p JOIN documents d ON d.id = p.document_id WHERE d.tenant = %(tenant)s AND p.id = ANY(%(ids)s)
UNION ALL
SELECT 'procedure', id, id, workspace, namespace, CASE WHEN is_private THEN user_id END, agent_id, NULL
FROM procedures WHERE tenant = %(tenant)s AND id = ANY(%(ids)s) AND deleted_at IS NULL
UNION ALL
SELECT 'entity', id, id, workspace, namespace, NULL, NULL, NULL
FROM entities WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)
UNION ALL
SELECT 'fact', id, id, workspace, namespace, NULL, NULL, NULL
FROM edges WHERE tenant = %(tenant)s AND id = ANY(%(ids)s)
