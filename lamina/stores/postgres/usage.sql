-- name: add_usage
-- In the order of the key, so that two replicas cannot deadlock.
INSERT INTO usage_days AS u (tenant, day, requests, searches, turns, embedded_tokens, model_tokens, bytes)
SELECT * FROM unnest(%(tenant)s::text[], %(day)s::date[], %(requests)s::bigint[], %(searches)s::bigint[],
                     %(turns)s::bigint[], %(embedded_tokens)s::bigint[], %(model_tokens)s::bigint[], %(bytes)s::bigint[])
ON CONFLICT (tenant, day) DO UPDATE
SET requests = u.requests + excluded.requests, searches = u.searches + excluded.searches,
    turns = u.turns + excluded.turns, embedded_tokens = u.embedded_tokens + excluded.embedded_tokens,
    model_tokens = u.model_tokens + excluded.model_tokens, bytes = u.bytes + excluded.bytes

-- name: read_usage_days
SELECT day, requests, searches, turns, embedded_tokens, model_tokens, bytes FROM usage_days
WHERE tenant = %(tenant)s AND day >= %(since)s AND day < %(until)s
ORDER BY day
