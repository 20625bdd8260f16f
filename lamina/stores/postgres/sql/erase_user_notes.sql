-- Some of a user's notes, deleted and merged ones included, locked in the order of ids.
SELECT id, workspace, namespace FROM notes
WHERE tenant = %(tenant)s AND user_id = %(user_id)s
ORDER BY id
LIMIT %(limit)s
FOR UPDATE
