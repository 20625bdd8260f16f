-- name: record_events
-- The notification of a transaction is sent once, at its commit.
WITH added AS (
    INSERT INTO events (id, tenant, workspace, namespace, user_id, agent_id, session_id, kind, memory_ids, facts)
    SELECT e.id, e.tenant, e.workspace, e.namespace, e.user_id, e.agent_id, e.session_id, e.kind,
           coalesce((SELECT array_agg(i::uuid ORDER BY place)
                     FROM jsonb_array_elements_text(e.memory_ids) WITH ORDINALITY AS ids (i, place)), '{}'),
           e.facts
    FROM unnest(%(ids)s::uuid[], %(tenants)s::text[], %(workspaces)s::text[], %(namespaces)s::text[],
                %(users)s::text[], %(agents)s::text[], %(sessions)s::text[], %(kinds)s::text[],
                %(memory_ids)s::jsonb[], %(facts)s::jsonb[])
         WITH ORDINALITY AS e (id, tenant, workspace, namespace, user_id, agent_id, session_id, kind, memory_ids, facts,
                               place)
    ORDER BY e.place
)
SELECT pg_notify('lamina_events', '')

-- name: settled_events
SELECT settled_events() AS seq

-- name: erase_memory_ids
-- Of memories that were erased with their user without being theirs. One id at a time: for a thousand at once the
-- planner expects all events, and reads them from end to end.
UPDATE events
SET memory_ids = ARRAY(SELECT i FROM unnest(memory_ids) WITH ORDINALITY AS ids (i, place)
                       WHERE i <> ALL(%(ids)s::uuid[]) ORDER BY place)
WHERE tenant = %(tenant)s AND seq = ANY(ARRAY(
    SELECT e.seq FROM unnest(%(ids)s::uuid[]) AS erased (id) JOIN events e ON e.memory_ids @> ARRAY[erased.id]
    WHERE e.tenant = %(tenant)s))

-- name: find_event
SELECT seq FROM events WHERE tenant = %(tenant)s AND id = %(id)s

-- name: find_oldest_event
SELECT created_at FROM events WHERE tenant = %(tenant)s ORDER BY seq LIMIT 1

-- name: read_events
SELECT id, seq, created_at, tenant, workspace, namespace, user_id, agent_id, session_id, kind, memory_ids, facts
FROM events
WHERE tenant = %(tenant)s AND seq > %(after)s AND seq <= %(until)s
  AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
  AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
  AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s)
  AND (%(agent_id)s::text IS NULL OR agent_id = %(agent_id)s)
  AND (%(kinds)s::text[] IS NULL OR kind = ANY(%(kinds)s))
ORDER BY seq
LIMIT %(limit)s

-- name: read_new_events
SELECT id, seq, created_at, tenant, workspace, namespace, user_id, agent_id, session_id, kind, memory_ids, facts
FROM events
WHERE tenant = ANY(%(tenants)s) AND seq > %(after)s AND seq <= %(until)s
ORDER BY seq
LIMIT %(limit)s
