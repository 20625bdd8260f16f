-- Those of a user's documents whose passages are gone.
DELETE FROM documents d
WHERE tenant = %(tenant)s AND user_id = %(user_id)s
  AND NOT EXISTS (SELECT FROM passages p WHERE p.document_id = d.id)
RETURNING id, workspace, namespace
