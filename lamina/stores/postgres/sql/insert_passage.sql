INSERT INTO passages (
    id, document_id, position, content, tenant, workspace, namespace, user_id, heading, page, text_start, text_end
) VALUES (
    %(id)s, %(document_id)s, %(position)s, %(content)s, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s,
    %(heading)s, %(page)s, %(text_start)s, %(text_end)s
)
