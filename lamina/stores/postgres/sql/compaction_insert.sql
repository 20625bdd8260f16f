-- Summaries of sessions, and for the undo which ones a run made.
WITH made AS (
    INSERT INTO messages (
        id, tenant, workspace, namespace, session_id, user_id, agent_id, swarm_id, position, role, name, content,
        content_hash, metadata, occurred_at, created_at, is_summary)
    SELECT s.id, %(tenant)s, %(workspace)s, %(namespace)s, s.session_id, s.user_id, s.agent_id, s.swarm_id, s.position,
           'system', %(name)s, s.content, s.content_hash, s.metadata, s.occurred_at, %(moment)s, true
    FROM unnest(%(ids)s::uuid[], %(sessions)s::text[], %(users)s::text[], %(agents)s::text[], %(swarms)s::text[],
                %(positions)s::bigint[], %(contents)s::text[], %(hashes)s::bytea[], %(metadata)s::jsonb[],
                %(times)s::timestamptz[])
         AS s (id, session_id, user_id, agent_id, swarm_id, position, content, content_hash, metadata, occurred_at)
    RETURNING id
)
INSERT INTO job_changes (run_id, relation, row_id, before, after)
SELECT %(run_id)s, %(relation)s, id, '{}', '{}' FROM made WHERE %(run_id)s::uuid IS NOT NULL
