-- Summaries that stand for nothing any more; one that another summary stands for stays.
DELETE FROM messages
WHERE id = ANY(%(ids)s) AND is_summary AND compacted_at IS NULL
RETURNING id, tenant, workspace, namespace
