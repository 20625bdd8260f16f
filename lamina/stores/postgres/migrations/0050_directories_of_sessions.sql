-- Sessions are listed by their age.
CREATE INDEX sessions_by_age ON sessions (tenant, workspace, namespace, created_at, session_id);
