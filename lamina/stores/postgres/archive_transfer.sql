-- name: find_archive_candidates
-- Cold notes with few hits, the last of them long ago. Not those that a live or restorable note was made from, nor
-- derived notes, nor those that expire, nor pinned ones, nor those that were restored lately: these became cold later
-- than they would have been archived.
SELECT n.id, n.version, n.hits, n.last_hit_at,
       octet_length(n.content)
       + coalesce((SELECT sum(octet_length(v.content)) FROM note_versions v WHERE v.note_id = n.id), 0) AS size_bytes
FROM notes n
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND n.temperature = 'cold' AND n.expires_at IS NULL
  AND n.hits <= %(most_hits)s AND n.last_hit_at <= %(moment)s::timestamptz - %(idle)s::interval
  AND (n.temperature_changed_at <= n.last_hit_at + %(idle)s::interval
       OR n.temperature_changed_at <= %(moment)s::timestamptz - %(idle)s::interval)
  AND NOT EXISTS (SELECT FROM feedback f
                  WHERE f.tenant = n.tenant AND f.memory_id = n.id AND f.pinned_at IS NOT NULL)
  AND NOT EXISTS (SELECT FROM note_sources s JOIN notes m ON m.id = s.note_id
                  WHERE s.source_id = n.id AND (m.deleted_at IS NULL OR m.merged_into IS NOT NULL))
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)
  AND (%(after)s::uuid IS NULL OR n.id > %(after)s)
ORDER BY n.id
LIMIT %(limit)s

-- name: read_notes_to_archive
-- The notes are locked; the conditions are checked again, for a note may have become a source of another one
-- meanwhile.
SELECT id, tenant, workspace, namespace, user_id, agent_id, session_id, swarm_id, category, content, content_hash,
       importance, confidence, tags, metadata, source, version, hits, event_at, last_hit_at, created_at, updated_at,
       temperature_changed_at, weight, speakers
FROM notes n
WHERE id = ANY(%(ids)s) AND temperature = 'cold' AND expires_at IS NULL
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.source_id = n.id)
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)
ORDER BY id

-- name: read_chunks_to_archive
SELECT note_id AS id, chunk, text_start, text_end, generation, embedding
FROM note_chunks
WHERE note_id = ANY(%(ids)s)
ORDER BY note_id, generation, chunk

-- name: read_versions_to_archive
SELECT note_id AS id, version, content, category, importance, confidence, tags, metadata, written_at
FROM note_versions
WHERE note_id = ANY(%(ids)s)
ORDER BY note_id, version

-- name: read_links_to_archive
-- Links from these notes, and links of similarity to them.
SELECT from_id, to_id, kind, source, strength, seen_at
FROM memory_links
WHERE from_id = ANY(%(ids)s) OR (to_id = ANY(%(ids)s) AND kind = 'similar' AND from_tier = 2)
ORDER BY from_id, to_id, kind

-- name: insert_archived
INSERT INTO archived_notes (
    id, tenant, workspace, namespace, user_id, session_id, content_hash, file, run_id, archived_at, drawn_from)
SELECT id, tenant, workspace, namespace, user_id, coalesce(session_id, ''), content_hash, %(file)s, %(run_id)s,
       %(moment)s, CASE WHEN version = 1 AND source LIKE 'message:%%' THEN source END
FROM notes
WHERE id = ANY(%(ids)s)

-- name: delete_archived_notes
-- Their file is written. Chunks and versions are deleted with the rows.
DELETE FROM notes WHERE id = ANY(%(ids)s)

-- name: find_tellers
-- Of notes whose message was corrected, each with the message of their session that has their text, and who of its
-- speakers said that; of one without speakers, or of an earlier release, who says it now. Who only quotes or denies what a
-- speaker said has another name.
SELECT told.id, m.id AS message, CASE
    WHEN told.speakers IS NULL THEN array_remove(ARRAY[m.name], NULL)
    ELSE ARRAY(
        SELECT s.name FROM jsonb_array_elements_text(told.speakers) WITH ORDINALITY AS s (name, place)
        WHERE EXISTS (SELECT FROM messages o
                      WHERE o.tenant = %(tenant)s AND o.workspace = %(workspace)s AND o.namespace = %(namespace)s
                        AND o.session_id = told.session_id AND o.user_id IS NOT DISTINCT FROM told.user_id
                        AND o.name = s.name AND o.role <> 'tool' AND NOT o.is_summary
                        AND position(told.content IN o.content) > 0)
        ORDER BY s.place) END AS speakers
FROM unnest(%(ids)s::uuid[], %(sessions)s::text[], %(users)s::text[], %(contents)b::text[], %(speakers)s::jsonb[])
     AS told (id, session_id, user_id, content, speakers)
CROSS JOIN LATERAL (
    SELECT m.id, CASE WHEN m.role <> 'tool' THEN m.name END AS name FROM messages m
    WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s
      AND m.session_id = told.session_id AND m.user_id IS NOT DISTINCT FROM told.user_id AND NOT m.is_summary
      AND position(told.content IN m.content) > 0
      AND (told.speakers IS NULL
           OR (m.role <> 'tool' AND m.name IN (SELECT jsonb_array_elements_text(told.speakers))))
    ORDER BY m.position
    LIMIT 1
    FOR SHARE OF m
) m

-- name: restore_notes
-- A note whose text the scope has again stays out. They are cold from now on, by which archival leaves them alone. A file
-- of an earlier release does not say who said them; as in migration 0072, their messages do.
INSERT INTO notes (
    id, tenant, workspace, namespace, user_id, agent_id, session_id, swarm_id, category, content, content_hash,
    importance, confidence, tags, metadata, source, version, hits, event_at, last_hit_at, created_at, updated_at,
    temperature, temperature_changed_at, weight, speakers
)
SELECT id, tenant, workspace, namespace, user_id, agent_id, session_id, swarm_id, category, content, content_hash,
       importance, confidence, tags, metadata, source, version, hits, event_at, last_hit_at, created_at, updated_at,
       'cold', now(), weight,
       CASE WHEN tells_speakers THEN speakers
            WHEN version = 1
                 AND source ~ '^message:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' THEN (
                SELECT ARRAY[m.name] FROM messages m
                WHERE m.id = substr(r.source, 9)::uuid AND m.tenant = r.tenant AND m.workspace = r.workspace
                  AND m.namespace = r.namespace AND m.session_id = r.session_id
                  AND m.user_id IS NOT DISTINCT FROM r.user_id
                  AND m.created_at BETWEEN r.created_at - interval '10 minutes' AND r.created_at + interval '10 minutes'
                  AND m.name = r.metadata ->> 'speaker')
       END
FROM json_to_recordset(%(rows)s::json) AS r (
    id uuid, tenant text, workspace text, namespace text, user_id text, agent_id text, session_id text, swarm_id text,
    category text, content text, content_hash bytea, importance float8, confidence float8, tags text[], metadata json,
    source text, version integer, hits bigint, event_at timestamptz, last_hit_at timestamptz, created_at timestamptz,
    updated_at timestamptz, weight float8, speakers text[],
    tells_speakers boolean
)
ORDER BY content_hash
ON CONFLICT DO NOTHING
RETURNING id

-- name: restore_versions
INSERT INTO note_versions (note_id, version, content, category, importance, confidence, tags, metadata, written_at)
SELECT note_id, version, content, category, importance, confidence, tags, metadata, written_at
FROM json_to_recordset(%(rows)s::json) AS r (
    note_id uuid, version integer, content text, category text, importance float8, confidence float8, tags text[],
    metadata json, written_at timestamptz
)

-- name: restore_chunks
-- A cold note's chunks have no words.
INSERT INTO note_chunks (
    note_id, chunk, tenant, workspace, namespace, text_start, text_end, tsv, generation, embedding
)
SELECT n.id, c.chunk, n.tenant, n.workspace, n.namespace, c.text_start, c.text_end, NULL, %(generation)s, c.embedding
FROM unnest(%(ids)s::uuid[], %(chunks)s::integer[], %(starts)s::integer[], %(ends)s::integer[],
            %(embeddings)b::vector[]) AS c (id, chunk, text_start, text_end, embedding)
JOIN notes n ON n.id = c.id

-- name: restore_links
-- To targets that still exist: locked entities, and notes that were not changed since.
INSERT INTO memory_links (
    from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
)
SELECT l.from_id, l.to_id, l.kind, 2, %(tenant)s, %(workspace)s, %(namespace)s, l.user_id, l.source, l.strength,
       l.seen_at
FROM json_to_recordset(%(rows)s::json) AS l (
    from_id uuid, to_id uuid, kind text, user_id text, source text, strength float8, seen_at timestamptz
)
WHERE CASE WHEN l.kind = 'similar'
      THEN EXISTS (SELECT FROM notes o
                   WHERE o.id = l.to_id AND o.deleted_at IS NULL AND o.updated_at <= %(archived_at)s)
      ELSE EXISTS (SELECT FROM entities e WHERE e.id = l.to_id)
      END
ON CONFLICT DO NOTHING

-- name: restore_links_from
-- From notes that were not changed since; all columns but the strength come from their rows.
INSERT INTO memory_links (
    from_id, to_id, kind, from_tier, tenant, workspace, namespace, user_id, source, strength, seen_at
)
SELECT n.id, l.to_id, 'similar', 2, n.tenant, n.workspace, n.namespace, n.user_id, n.source, l.strength, n.event_at
FROM unnest(%(from_ids)s::uuid[], %(to_ids)s::uuid[], %(strengths)s::float8[]) AS l (from_id, to_id, strength)
JOIN notes n ON n.id = l.from_id AND n.tenant = %(tenant)s AND n.deleted_at IS NULL AND n.updated_at <= %(archived_at)s
ON CONFLICT DO NOTHING
RETURNING from_id
