-- name: hold_feedback
-- Locked until the transaction ends: of two votes at a time, the second counts both.
INSERT INTO feedback AS f (tenant, memory_id, workspace, namespace)
VALUES (%(tenant)s, %(id)s, %(workspace)s, %(namespace)s)
ON CONFLICT (memory_id) DO UPDATE SET workspace = excluded.workspace, namespace = excluded.namespace

-- name: hold_memory
-- Whatever it is, it is neither changed nor deleted until the transaction ends. An exclusive lock: a pin may change it.
WITH note AS (
    SELECT workspace, namespace FROM notes
    WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL FOR NO KEY UPDATE
), archived AS (
    SELECT workspace, namespace FROM archived_notes WHERE id = %(id)s AND tenant = %(tenant)s FOR NO KEY UPDATE
), message AS (
    SELECT workspace, namespace FROM messages WHERE id = %(id)s AND tenant = %(tenant)s FOR NO KEY UPDATE
), document AS (
    SELECT workspace, namespace FROM documents WHERE id = %(id)s AND tenant = %(tenant)s FOR NO KEY UPDATE
), passage AS (
    SELECT workspace, namespace FROM passages WHERE id = %(id)s AND tenant = %(tenant)s FOR NO KEY UPDATE
), procedure AS (
    SELECT workspace, namespace FROM procedures
    WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL FOR NO KEY UPDATE
), entity AS (
    SELECT workspace, namespace FROM entities WHERE id = %(id)s AND tenant = %(tenant)s FOR NO KEY UPDATE
), fact AS (
    SELECT workspace, namespace FROM edges WHERE id = %(id)s AND tenant = %(tenant)s FOR NO KEY UPDATE
)
SELECT * FROM note UNION ALL SELECT * FROM archived UNION ALL SELECT * FROM message UNION ALL SELECT * FROM document
UNION ALL SELECT * FROM passage UNION ALL SELECT * FROM procedure UNION ALL SELECT * FROM entity
UNION ALL SELECT * FROM fact

-- name: find_pinned
SELECT memory_id FROM feedback
WHERE (%(tenant)s::text IS NULL OR tenant = %(tenant)s) AND memory_id = ANY(%(ids)s) AND pinned_at IS NOT NULL

-- name: put_vote
INSERT INTO votes (tenant, memory_id, voter, is_useful, voted_at)
VALUES (%(tenant)s, %(id)s, %(voter)s, %(is_useful)s, %(now)s)
ON CONFLICT (memory_id, voter) DO UPDATE SET is_useful = excluded.is_useful, voted_at = excluded.voted_at

-- name: take_vote_back
DELETE FROM votes WHERE tenant = %(tenant)s AND memory_id = %(id)s AND voter = %(voter)s

-- name: count_votes
UPDATE feedback f SET (useful, wrong) = (
    SELECT count(*) FILTER (WHERE is_useful), count(*) FILTER (WHERE NOT is_useful)
    FROM votes v WHERE v.memory_id = f.memory_id)
WHERE f.memory_id = %(id)s AND f.tenant = %(tenant)s

-- name: set_pin
UPDATE feedback SET pinned_at = %(pinned_at)s WHERE memory_id = %(id)s AND tenant = %(tenant)s

-- name: restore_weight
UPDATE notes SET weight = 1 WHERE id = %(id)s AND tenant = %(tenant)s AND deleted_at IS NULL AND weight < 1

-- name: read_feedback
SELECT coalesce(f.useful, 0) AS useful, coalesce(f.wrong, 0) AS wrong, f.pinned_at,
       (SELECT is_useful FROM votes v WHERE v.memory_id = %(id)s AND v.tenant = %(tenant)s AND voter = %(voter)s) AS own
FROM (SELECT %(id)s::uuid AS id) wanted LEFT JOIN feedback f ON f.memory_id = wanted.id AND f.tenant = %(tenant)s

-- name: list_pinned_notes
-- Where a process of an earlier release pinned a note, its row has no place.
SELECT n.id, n.event_at
FROM feedback f JOIN notes n ON n.id = f.memory_id
WHERE (f.tenant = %(tenant)s AND f.workspace = %(workspace)s AND f.namespace = %(namespace)s AND f.pinned_at IS NOT NULL
       OR f.tenant = %(tenant)s AND f.workspace IS NULL AND f.pinned_at IS NOT NULL)
  AND n.tenant = %(tenant)s AND n.workspace = %(workspace)s AND n.namespace = %(namespace)s AND n.deleted_at IS NULL
  AND (n.expires_at IS NULL OR n.expires_at > statement_timestamp())
  AND (%(user_id)s::text IS NULL OR n.user_id IS NULL OR n.user_id = %(user_id)s)
  AND (%(as_of)s::timestamptz IS NULL OR n.event_at <= %(as_of)s)
ORDER BY f.pinned_at, n.id
LIMIT %(limit)s

-- name: move_feedback
-- With memories that moved to another namespace.
UPDATE feedback SET workspace = %(workspace)s, namespace = %(namespace)s
WHERE tenant = %(tenant)s AND memory_id = ANY(%(ids)s)

-- name: erase_feedback
WITH gone AS (
    DELETE FROM votes WHERE tenant = %(tenant)s AND memory_id = ANY(%(ids)s)
)
DELETE FROM feedback WHERE tenant = %(tenant)s AND memory_id = ANY(%(ids)s)
