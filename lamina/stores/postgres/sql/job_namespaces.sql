-- Namespaces of one partition in the order of their ids, from after the given one on. Every write of a namespace has a
-- row in epochs.
SELECT tenant, workspace, namespace
FROM epochs
WHERE namespace <> ''
  AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
  AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
  AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
  AND (%(after)s::text[] IS NULL
       OR (tenant, workspace, namespace) > ((%(after)s::text[])[1], (%(after)s::text[])[2], (%(after)s::text[])[3]))
  AND (hashtextextended(tenant, hashtextextended(workspace, hashtextextended(namespace, 0))) & 2147483647)
      %% %(partitions)s = %(partition)s
ORDER BY tenant, workspace, namespace
LIMIT %(limit)s
