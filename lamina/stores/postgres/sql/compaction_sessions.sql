-- Sessions, in the order of their ids, whose live messages may hold so many tokens: a token is a byte at least.
SELECT s.session_id
FROM sessions s
CROSS JOIN LATERAL (
    SELECT sum(octet_length(m.content) + coalesce(octet_length(m.name) + 2, 0)) AS bytes
    FROM messages m
    WHERE m.tenant = s.tenant AND m.workspace = s.workspace AND m.namespace = s.namespace
      AND m.session_id = s.session_id AND m.compacted_at IS NULL
) live
WHERE s.tenant = %(tenant)s AND s.workspace = %(workspace)s AND s.namespace = %(namespace)s
  AND (%(after)s::text IS NULL OR s.session_id > %(after)s)
  AND live.bytes >= %(least_tokens)s
ORDER BY s.session_id
LIMIT %(limit)s
