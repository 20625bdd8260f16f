SELECT p.id, p.position, p.content, p.text_start, p.text_end, p.heading, p.page
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE d.id = %(id)s AND d.tenant = %(tenant)s
ORDER BY p.position
LIMIT %(limit)s OFFSET %(offset)s
