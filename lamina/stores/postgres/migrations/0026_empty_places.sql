-- When nothing was left in a place, and its epoch then: another epoch means that something was written since.
ALTER TABLE epochs ADD COLUMN emptied_at timestamptz, ADD COLUMN emptied_epoch bigint;

-- The row of namespace '' stands for the whole workspace. Live and deleted rows are asked for apart, by their indexes; a
-- merged note stays no longer than the one that it was merged into.
CREATE FUNCTION is_empty_place(tenant text, workspace text, namespace text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    IF $3 = '' THEN
        RETURN NOT EXISTS (SELECT FROM epochs e WHERE e.tenant = $1 AND e.workspace = $2 AND e.namespace <> '')
            AND NOT EXISTS (SELECT FROM memory_profiles p WHERE p.tenant = $1 AND p.workspace = $2)
            AND NOT EXISTS (SELECT FROM response_agents a WHERE a.tenant = $1 AND a.workspace = $2)
            AND NOT EXISTS (SELECT FROM shares s WHERE s.tenant = $1 AND (s.from_workspace = $2 OR s.to_workspace = $2));
    END IF;
    RETURN NOT EXISTS (
            SELECT FROM notes n WHERE n.tenant = $1 AND n.workspace = $2 AND n.namespace = $3 AND n.deleted_at IS NULL)
        AND NOT EXISTS (
            SELECT FROM notes n WHERE n.tenant = $1 AND n.workspace = $2 AND n.namespace = $3
                AND n.deleted_at IS NOT NULL AND n.merged_into IS NULL)
        AND NOT EXISTS (SELECT FROM sessions s WHERE s.tenant = $1 AND s.workspace = $2 AND s.namespace = $3)
        AND NOT EXISTS (SELECT FROM messages m WHERE m.tenant = $1 AND m.workspace = $2 AND m.namespace = $3)
        AND NOT EXISTS (SELECT FROM documents d WHERE d.tenant = $1 AND d.workspace = $2 AND d.namespace = $3)
        AND NOT EXISTS (SELECT FROM profiles p WHERE p.tenant = $1 AND p.workspace = $2 AND p.namespace = $3)
        AND NOT EXISTS (SELECT FROM profile_versions v WHERE v.tenant = $1 AND v.workspace = $2 AND v.namespace = $3)
        AND NOT EXISTS (SELECT FROM entities e WHERE e.tenant = $1 AND e.workspace = $2 AND e.namespace = $3)
        AND NOT EXISTS (
            SELECT FROM procedures p
            WHERE p.tenant = $1 AND p.workspace = $2 AND p.namespace = $3 AND p.deleted_at IS NULL)
        AND NOT EXISTS (
            SELECT FROM procedures p
            WHERE p.tenant = $1 AND p.workspace = $2 AND p.namespace = $3 AND p.deleted_at IS NOT NULL)
        AND NOT EXISTS (SELECT FROM archived_notes a WHERE a.tenant = $1 AND a.workspace = $2 AND a.namespace = $3)
        AND NOT EXISTS (SELECT FROM archive_folders f WHERE f.tenant = $1 AND f.workspace = $2 AND f.namespace = $3)
        AND NOT EXISTS (SELECT FROM responses r WHERE r.tenant = $1 AND r.workspace = $2 AND r.namespace = $3)
        AND NOT EXISTS (
            SELECT FROM shares s WHERE s.tenant = $1 AND s.from_workspace = $2 AND s.from_namespace = $3);
END
$$;
