INSERT INTO note_versions (note_id, version, content, category, importance, confidence, tags, metadata, written_at)
SELECT note_id, version, content, category, importance, confidence, tags, metadata, written_at
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (
    note_id uuid, version integer, content text, category text, importance float8, confidence float8, tags text[],
    metadata jsonb, written_at timestamptz
)
