-- Those of these notes that are still there, as they are now, which they stay until the transaction ends.
SELECT n.id, 2 AS tier, n.content, n.user_id, n.source, n.event_at AS seen_at
FROM notes n
WHERE n.id = ANY(%(ids)s) AND n.deleted_at IS NULL AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
ORDER BY n.id
FOR SHARE
