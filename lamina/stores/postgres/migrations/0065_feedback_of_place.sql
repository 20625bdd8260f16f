-- The pins of a namespace are read by an index.
CREATE INDEX feedback_of_place ON feedback (tenant, workspace, namespace, pinned_at);
DROP INDEX feedback_pinned;
