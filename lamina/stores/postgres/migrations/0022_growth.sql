-- For the removal of old versions: only notes that were changed have any.
CREATE INDEX notes_changed ON notes (tenant, workspace, namespace, id) WHERE version > 1 AND deleted_at IS NULL;

-- For the removal of deleted notes.
CREATE INDEX notes_deleted ON notes (tenant, workspace, namespace, id)
WHERE deleted_at IS NOT NULL AND merged_into IS NULL;
CREATE INDEX procedures_deleted ON procedures (tenant, workspace, namespace, id) WHERE deleted_at IS NOT NULL;

-- The namespace of a changed note, for the projection that has an index for each; rows of an earlier release lack it.
ALTER TABLE outbox ADD COLUMN tenant text, ADD COLUMN workspace text, ADD COLUMN namespace text;
CREATE INDEX outbox_of_cold ON outbox (tenant, seq) WHERE projection = 'cold';
