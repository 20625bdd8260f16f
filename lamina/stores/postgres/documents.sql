-- name: known_documents
SELECT d.id, d.key, d.content_hash, d.version,
       (SELECT count(*) FROM passages p WHERE p.document_id = d.id) AS passages
FROM documents d
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND d.user_id IS NOT DISTINCT FROM %(user_id)s AND d.key = ANY(%(keys)s)

-- name: put_document
-- A document of the same key is replaced as a whole; an equal one stays as it is and returns no row.
INSERT INTO documents (
    id, tenant, workspace, namespace, user_id, agent_id, key, title, media_type, content, content_hash, characters,
    tags, metadata, source, event_at, created_at, updated_at
) VALUES (
    %(id)s, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s, %(agent_id)s, %(key)s, %(title)s, %(media_type)s,
    %(content)s, %(content_hash)s, %(characters)s, %(tags)s, %(metadata)s, %(source)s, %(event_at)s, %(now)s, %(now)s
)
ON CONFLICT (tenant, workspace, namespace, user_id, key) DO UPDATE
SET agent_id = excluded.agent_id, title = excluded.title, media_type = excluded.media_type,
    content = excluded.content, content_hash = excluded.content_hash, characters = excluded.characters,
    tags = excluded.tags, metadata = excluded.metadata, source = excluded.source, event_at = excluded.event_at,
    version = documents.version + 1, updated_at = excluded.updated_at
WHERE documents.content_hash <> excluded.content_hash
RETURNING id, version

-- name: delete_passages
DELETE FROM passages WHERE document_id = %(id)s
RETURNING id

-- name: insert_passage
INSERT INTO passages (
    id, document_id, position, content, tenant, workspace, namespace, user_id, heading, page, text_start, text_end
) VALUES (
    %(id)s, %(document_id)s, %(position)s, %(content)s, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s,
    %(heading)s, %(page)s, %(text_start)s, %(text_end)s
)

-- name: insert_passage_chunk
INSERT INTO passage_chunks (
    passage_id, chunk, text_start, text_end, tenant, workspace, namespace, user_id, tsv, generation, embedding
) VALUES (
    %(id)s, %(chunk)s, %(text_start)s, %(text_end)s, %(tenant)s, %(workspace)s, %(namespace)s, %(user_id)s,
    to_tsvector('lamina', %(words)s), %(generation)s, %(embedding)s
)

-- name: lock_document
SELECT workspace, namespace FROM documents WHERE id = %(id)s AND tenant = %(tenant)s
FOR UPDATE

-- name: delete_document
DELETE FROM documents WHERE id = %(id)s AND tenant = %(tenant)s

-- name: get_document
SELECT d.id, d.workspace, d.namespace, d.user_id, d.agent_id, d.key, d.title, d.media_type, d.characters, d.tags,
       d.metadata, d.source, d.version, d.event_at, d.created_at, d.updated_at,
       CASE WHEN %(with_content)s THEN d.content END AS content,
       (SELECT count(*) FROM passages p WHERE p.document_id = d.id) AS passages
FROM documents d
WHERE d.id = %(id)s AND d.tenant = %(tenant)s

-- name: list_documents
SELECT d.id, d.workspace, d.namespace, d.user_id, d.agent_id, d.key, d.title, d.media_type, d.characters, d.tags,
       d.metadata, d.source, d.version, d.event_at, d.created_at, d.updated_at,
       NULL AS content, (SELECT count(*) FROM passages p WHERE p.document_id = d.id) AS passages
FROM documents d
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR d.user_id IS NULL OR d.user_id = %(user_id)s)
  AND (%(key)s::text IS NULL OR d.key = %(key)s)
  AND /*filters*/ true
ORDER BY d.event_at DESC, d.id DESC
LIMIT %(limit)s OFFSET %(offset)s

-- name: list_passages
SELECT p.id, p.position, p.content, p.text_start, p.text_end, p.heading, p.page
FROM passages p
JOIN documents d ON d.id = p.document_id
WHERE d.id = %(id)s AND d.tenant = %(tenant)s
ORDER BY p.position
LIMIT %(limit)s OFFSET %(offset)s

-- name: fetch_documents
SELECT p.id, wanted.chunk, p.position, p.content, p.heading, p.page, d.id AS document_id, d.title, d.key,
       d.media_type, d.user_id, d.agent_id, d.tags, d.metadata, d.source, d.event_at
FROM unnest(%(ids)s::uuid[], %(chunks)s::integer[]) AS wanted (id, chunk)
JOIN passages p ON p.id = wanted.id
JOIN documents d ON d.id = p.document_id
WHERE d.tenant = %(tenant)s AND d.workspace = %(workspace)s AND d.namespace = %(namespace)s
  AND (%(user_id)s::text IS NULL OR d.user_id IS NULL OR d.user_id = %(user_id)s)
  AND /*filters*/ true
