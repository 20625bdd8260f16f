-- Notes of an archive file as they were. A text that the scope has again meanwhile stays out.
INSERT INTO notes (
    id, tenant, workspace, namespace, user_id, agent_id, session_id, swarm_id, category, content, content_hash,
    importance, confidence, tags, metadata, source, version, hits, event_at, last_hit_at, created_at, updated_at,
    temperature, temperature_changed_at, weight
)
SELECT id, tenant, workspace, namespace, user_id, agent_id, session_id, swarm_id, category, content, content_hash,
       importance, confidence, tags, metadata, source, version, hits, event_at, last_hit_at, created_at, updated_at,
       'cold', temperature_changed_at, weight
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    id uuid, tenant text, workspace text, namespace text, user_id text, agent_id text, session_id text, swarm_id text,
    category text, content text, content_hash bytea, importance float8, confidence float8, tags text[], metadata jsonb,
    source text, version integer, hits bigint, event_at timestamptz, last_hit_at timestamptz, created_at timestamptz,
    updated_at timestamptz, temperature_changed_at timestamptz, weight float8
)
ORDER BY content_hash
ON CONFLICT DO NOTHING
RETURNING id
