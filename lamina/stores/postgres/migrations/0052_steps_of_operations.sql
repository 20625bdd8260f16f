-- The deletion that put a memory into the trash, by which its undo finds it; and when a failing operation is tried again,
-- or how long a process may take for the step at which it works.
ALTER TABLE trash ADD COLUMN operation_id uuid;
CREATE INDEX trash_of_operation ON trash (tenant, operation_id, id) WHERE operation_id IS NOT NULL;
ALTER TABLE operations ADD COLUMN failures integer NOT NULL DEFAULT 0, ADD COLUMN retry_at timestamptz;
