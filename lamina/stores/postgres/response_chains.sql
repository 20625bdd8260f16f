-- name: find_chain
SELECT session_id FROM response_chains
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND chain = keyed_hash(%(tenant)s, %(chain)s) AND created_at > %(cutoff)s

-- name: put_chains
-- Nothing where the session is not there: no turn of it was recorded. A conversation stays in its first session; of a
-- response, another router may have guessed the session while the turn that made it was recorded.
INSERT INTO response_chains (tenant, workspace, namespace, chain, session_id, user_id, created_at)
SELECT s.tenant, s.workspace, s.namespace, keyed_hash(s.tenant, new.chain), s.session_id, %(user_id)s, %(now)s
FROM sessions s, unnest(%(chains)s::text[]) AS new (chain)
WHERE s.tenant = %(tenant)s AND s.workspace = %(workspace)s AND s.namespace = %(namespace)s
  AND s.session_id = %(session_id)s
ON CONFLICT (tenant, workspace, namespace, chain) DO UPDATE SET
    created_at = excluded.created_at,
    session_id = CASE WHEN excluded.chain = keyed_hash(excluded.tenant, %(made)s::text)
        THEN excluded.session_id ELSE response_chains.session_id END,
    user_id = CASE WHEN excluded.chain = keyed_hash(excluded.tenant, %(made)s::text)
        THEN excluded.user_id ELSE response_chains.user_id END

-- name: end_chains
-- Those that are too old, and the oldest ones beyond a number.
DELETE FROM response_chains
WHERE tenant = %(tenant)s AND created_at <= greatest(%(cutoff)s, (
    SELECT created_at FROM response_chains WHERE tenant = %(tenant)s
    ORDER BY created_at DESC OFFSET %(most)s LIMIT 1
))
