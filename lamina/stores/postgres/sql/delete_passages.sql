DELETE FROM passages WHERE document_id = %(id)s
RETURNING id
