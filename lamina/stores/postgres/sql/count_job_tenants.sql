SELECT count(*) AS units
FROM (
    SELECT tenant FROM epochs UNION SELECT tenant FROM api_keys
    UNION SELECT tenant FROM embedding_cache UNION SELECT tenant FROM responses
) known
WHERE %(tenant)s::text IS NULL OR tenant = %(tenant)s
