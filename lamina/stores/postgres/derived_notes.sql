-- name: lock_sources
-- Live notes with the same text, without expiry if that is asked for, locked until the transaction ends.
SELECT n.id
FROM unnest(%(ids)s::uuid[], %(hashes)s::bytea[]) AS d (id, content_hash)
JOIN notes n ON n.id = d.id
WHERE n.tenant = %(tenant)s AND n.deleted_at IS NULL AND n.content_hash = d.content_hash
  AND (n.expires_at IS NULL OR NOT %(lasting)s)
ORDER BY n.id
FOR SHARE OF n

-- name: find_derived
-- Deleted ones, too; by an id that follows from a former name of their place none that has stayed in another one.
SELECT id FROM notes
WHERE id = ANY(%(ids)s)
   OR (id = ANY(%(former)s) AND (deleted_at IS NOT NULL OR (tenant, workspace, namespace) = (%(tenant)s, %(workspace)s, %(namespace)s)))

-- name: read_sources
-- A summary that nobody changed has lines of the speakers of the notes below it.
SELECT n.id, n.user_id, n.content, coalesce(array_to_string(n.speakers, ' and '), '') AS speaker, n.content_hash, n.event_at,
       n.importance, n.confidence, ARRAY(
    WITH RECURSIVE below (id) AS (
        SELECT s.source_id FROM note_sources s WHERE s.note_id = n.id AND n.version = 1
        UNION
        SELECT s.source_id FROM below b JOIN note_sources s ON s.note_id = b.id
    )
    SELECT DISTINCT told.name FROM below b JOIN notes o ON o.id = b.id
    CROSS JOIN LATERAL unnest(o.speakers || array_to_string(o.speakers, ' and ')) AS told (name)
    ORDER BY told.name
) AS quoted
FROM notes n
WHERE n.id = ANY(%(ids)s) AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s
  AND n.deleted_at IS NULL

-- name: insert_sources
INSERT INTO note_sources (note_id, source_id)
SELECT %(note_id)s, unnest(%(source_ids)s::uuid[])
ON CONFLICT DO NOTHING

-- name: find_summary_slice
-- The end of a slice of a scope's notes from a day on: the end of the day of the note that fills it.
SELECT date_trunc('day', max(event_at), 'UTC') + interval '1 day' AS until, count(*) AS notes
FROM (
    SELECT event_at FROM notes
    WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
      AND event_at < %(before)s AND (%(since)s::timestamptz IS NULL OR event_at >= %(since)s)
    ORDER BY event_at
    LIMIT %(limit)s
) slice

-- name: read_dated_notes
-- Notes of whole days, without derived ones and those that expire.
SELECT id, user_id, event_at, content_hash
FROM notes n
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s AND deleted_at IS NULL
  AND expires_at IS NULL AND event_at < %(until)s AND (%(since)s::timestamptz IS NULL OR event_at >= %(since)s)
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)

-- name: read_summaries
-- Existing summaries with the period in their metadata. Callers may write metadata, so nothing is cast.
SELECT n.id, n.user_id, n.metadata -> 'summary' ->> 'level' AS level, n.metadata -> 'summary' ->> 'start' AS start,
       n.content_hash,
       EXISTS (SELECT FROM feedback f
               WHERE f.tenant = n.tenant AND f.memory_id = n.id AND f.pinned_at IS NOT NULL) AS is_pinned
FROM notes n
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND n.source = %(source)s AND EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)

-- name: read_consolidated
-- The consolidated notes of a scope that nobody rewrote, with the sources of each, whether one of these ends: by itself,
-- or by the retention of their workspace; and whether somebody pinned it.
SELECT m.id, m.user_id, array_agg(s.id ORDER BY s.id) AS members,
       array_agg(s.content_hash ORDER BY s.id) AS hashes,
       bool_or(s.expires_at IS NOT NULL OR s.event_at <= %(moment)s::timestamptz - (
           SELECT make_interval(secs => 86400 * (settings ->> 'retention_days')::float8) FROM workspace_settings
           WHERE tenant = %(tenant)s AND workspace = %(workspace)s)) AS ends,
       EXISTS (SELECT FROM feedback f
               WHERE f.tenant = %(tenant)s AND f.memory_id = m.id AND f.pinned_at IS NOT NULL) AS is_pinned
FROM notes m
JOIN note_sources o ON o.note_id = m.id
JOIN notes s ON s.id = o.source_id
WHERE m.tenant = %(tenant)s AND m.workspace = %(workspace)s AND m.namespace = %(namespace)s AND m.deleted_at IS NULL
  AND m.source = %(source)s AND m.version = 1
GROUP BY m.id
ORDER BY m.id

-- name: read_consolidable
-- By id, each with its first vector. Without derived notes, those that expire, pinned ones, which stay as they are, and
-- those that a consolidated note was made from.
SELECT n.id, n.user_id, n.event_at, c.embedding::real[] AS embedding
FROM notes n
JOIN note_chunks c ON c.note_id = n.id AND c.chunk = 0
JOIN embedding_generations g ON g.generation = c.generation AND g.is_active
WHERE n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND n.expires_at IS NULL AND n.created_at < %(moment)s
  AND (n.event_at <= %(moment)s::timestamptz - (
           SELECT make_interval(secs => 86400 * (settings ->> 'retention_days')::float8) FROM workspace_settings
           WHERE tenant = %(tenant)s AND workspace = %(workspace)s)) IS NOT TRUE
  AND (%(after)s::uuid IS NULL OR n.id > %(after)s)
  AND NOT EXISTS (SELECT FROM note_sources s WHERE s.note_id = n.id)
  AND NOT EXISTS (SELECT FROM note_sources s JOIN notes m ON m.id = s.note_id
                  WHERE s.source_id = n.id AND m.source = %(source)s AND m.deleted_at IS NULL)
  AND NOT EXISTS (SELECT FROM feedback f
                  WHERE f.tenant = %(tenant)s AND f.memory_id = n.id AND f.pinned_at IS NOT NULL)
ORDER BY n.id
LIMIT %(limit)s

-- name: find_covered
-- Notes that were hidden in favour of these, each text once.
SELECT DISTINCT ON (user_id, content_hash) id, merged_into
FROM notes
WHERE merged_into = ANY(%(ids)s) AND tenant = %(tenant)s AND deleted_at IS NOT NULL
ORDER BY user_id, content_hash, id
