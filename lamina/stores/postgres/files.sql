-- name: lock_file
-- Waits for other writers of the path: without a row there is nothing else to lock.
SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(E'\x1f', %(tenant)s::text, %(workspace)s::text, %(namespace)s::text, %(path)s::text),
                                              hashtextextended(coalesce(%(user_id)s::text, ''), 33)))

-- name: find_file
SELECT id, agent_id, encode(text_hash, 'hex') AS etag
FROM documents
WHERE tenant = %(tenant)s AND workspace = %(workspace)s AND namespace = %(namespace)s
  AND user_id IS NOT DISTINCT FROM %(user_id)s::text AND key = %(key)s
FOR UPDATE

-- name: get_file
SELECT d.id, d.path, CASE WHEN %(with_content)s::bool THEN d.content END AS content, encode(d.text_hash, 'hex') AS etag,
       octet_length(d.content) AS size, (SELECT count(*) FROM passages p WHERE p.document_id = d.id) AS passages,
       d.is_always, d.mirror, d.version, d.workspace, d.namespace, d.user_id, d.agent_id, d.created_at, d.updated_at
FROM documents d
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND d.user_id IS NOT DISTINCT FROM %(user_id)s::text AND d.key = %(key)s

-- name: get_version
SELECT v.content, encode(v.text_hash, 'hex') AS etag
FROM documents d
JOIN file_versions v ON v.document_id = d.id
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND d.user_id IS NOT DISTINCT FROM %(user_id)s::text AND d.key = %(key)s AND v.version = %(version)s

-- name: list_files
-- In the order of the bytes of their paths, after one of them.
SELECT d.id, d.path, NULL AS content, encode(d.text_hash, 'hex') AS etag, octet_length(d.content) AS size,
       (SELECT count(*) FROM passages p WHERE p.document_id = d.id) AS passages,
       d.is_always, d.mirror, d.version, d.workspace, d.namespace, d.user_id, d.agent_id, d.created_at, d.updated_at
FROM documents d
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND d.user_id IS NOT DISTINCT FROM %(user_id)s::text AND d.path IS NOT NULL
  AND (%(mirror)s::text IS NULL OR d.mirror = %(mirror)s::text)
  AND d.path COLLATE "C" >= %(prefix)s::text AND starts_with(d.path, %(prefix)s::text)
  AND (%(after_path)s::text IS NULL OR d.path COLLATE "C" > %(after_path)s::text)
ORDER BY d.path COLLATE "C"
LIMIT %(limit)s

-- name: list_always
-- Files that every block shows, shared ones first. A text too long to be shown is not read: its length stands beside it.
SELECT id, path, user_id, CASE WHEN bytes <= %(most_each)s AND bytes_so_far <= %(most_together)s THEN content END AS content
FROM (SELECT d.id, d.path, d.user_id, d.content, octet_length(d.content) AS bytes,
             sum(octet_length(d.content)) FILTER (WHERE octet_length(d.content) <= %(most_each)s)
                 OVER (ORDER BY d.user_id NULLS FIRST, d.path COLLATE "C") AS bytes_so_far
      FROM documents d
      WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s AND d.is_always
        AND (d.user_id IS NULL OR d.user_id = %(user_id)s::text)
      ORDER BY d.user_id NULLS FIRST, d.path COLLATE "C"
      LIMIT %(limit)s) listed
ORDER BY user_id NULLS FIRST, path COLLATE "C"

-- name: keep_version
-- The text of a file that is about to be replaced; the oldest of more than enough go.
WITH kept AS (
    INSERT INTO file_versions (document_id, version, content, text_hash, replaced_at)
    SELECT id, version, content, text_hash, now() FROM documents WHERE id = %(id)s AND (text_hash <> %(text_hash)s::bytea OR is_always <> %(is_always)s)
    ON CONFLICT DO NOTHING
)
DELETE FROM file_versions v
WHERE v.document_id = %(id)s
  AND v.version <= (SELECT version FROM documents WHERE id = %(id)s) - %(versions)s
