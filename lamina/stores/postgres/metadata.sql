-- name: read_metadata
-- The metadata of memories by id; those of a passage are its document's.
SELECT id, metadata FROM messages WHERE tenant = %(tenant)s AND id = ANY(%(sessions)s)
UNION ALL
SELECT id, metadata FROM notes WHERE tenant = %(tenant)s AND id = ANY(%(notes)s)
UNION ALL
SELECT id, metadata FROM procedures WHERE tenant = %(tenant)s AND id = ANY(%(procedures)s)
UNION ALL
SELECT p.id, d.metadata
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE p.tenant = %(tenant)s AND p.id = ANY(%(documents)s)
