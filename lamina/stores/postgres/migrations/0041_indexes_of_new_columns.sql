-- Apart from the migrations that add the columns, whose lock stops reads, too: beside these, tables are read.
CREATE INDEX documents_by_path ON documents (tenant, workspace, namespace, path COLLATE "C") WHERE path IS NOT NULL;
CREATE INDEX documents_always ON documents (tenant, workspace, namespace) WHERE is_always;
CREATE INDEX procedures_learnt ON procedures (tenant, workspace, namespace, id) WHERE is_learnt AND deleted_at IS NULL;
