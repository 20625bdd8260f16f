SELECT workspace, namespace FROM documents WHERE id = %(id)s AND tenant = %(tenant)s
FOR UPDATE
