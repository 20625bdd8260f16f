-- How many memories mention each entity; counting stops where more would make no difference.
SELECT wanted.id, (
    SELECT count(*) FROM (
        SELECT FROM memory_links l WHERE l.to_id = wanted.id AND l.kind = 'mentions' LIMIT %(limit)s
    ) counted
) AS mentions
FROM unnest(%(ids)s::uuid[]) AS wanted (id)
