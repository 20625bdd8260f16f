-- Tenants of one partition that have written something or cached something, in the order of their ids.
SELECT tenant, NULL AS workspace, NULL AS namespace
FROM (
    SELECT tenant FROM epochs UNION SELECT tenant FROM api_keys
    UNION SELECT tenant FROM embedding_cache UNION SELECT tenant FROM responses
) known
WHERE (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
  AND (%(after)s::text[] IS NULL OR tenant > (%(after)s::text[])[1])
  AND (hashtextextended(tenant, 0) & 2147483647) %% %(partitions)s = %(partition)s
ORDER BY tenant
LIMIT %(limit)s
