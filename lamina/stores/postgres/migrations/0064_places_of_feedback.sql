-- Where the memory is, so that the pins of a namespace are read by an index. Null where it is gone, and where a process of
-- an earlier release wrote the row: those are looked at beside the ones of the namespace.
ALTER TABLE feedback ADD COLUMN workspace text, ADD COLUMN namespace text;
UPDATE feedback f SET (workspace, namespace) = (
    SELECT workspace, namespace FROM notes WHERE id = f.memory_id AND tenant = f.tenant
    UNION ALL SELECT workspace, namespace FROM archived_notes WHERE id = f.memory_id AND tenant = f.tenant
    UNION ALL SELECT workspace, namespace FROM messages WHERE id = f.memory_id AND tenant = f.tenant
    UNION ALL SELECT workspace, namespace FROM documents WHERE id = f.memory_id AND tenant = f.tenant
    UNION ALL SELECT workspace, namespace FROM passages WHERE id = f.memory_id AND tenant = f.tenant
    UNION ALL SELECT workspace, namespace FROM procedures WHERE id = f.memory_id AND tenant = f.tenant
    UNION ALL SELECT workspace, namespace FROM entities WHERE id = f.memory_id AND tenant = f.tenant
    UNION ALL SELECT workspace, namespace FROM edges WHERE id = f.memory_id AND tenant = f.tenant
    UNION ALL SELECT workspace, namespace FROM trash WHERE id = f.memory_id AND tenant = f.tenant
    LIMIT 1);
