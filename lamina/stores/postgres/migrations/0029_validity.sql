-- When an edge holds, its end excluded, and which edge took its place; NULL where a release before this one wrote it.
ALTER TABLE edges
    ADD COLUMN valid_from timestamptz,
    ADD COLUMN valid_to timestamptz,
    ADD COLUMN replaced_by uuid,
    ADD COLUMN recorded_at timestamptz NOT NULL DEFAULT now();

-- Replacements that callers state; they last as long as both edges.
CREATE TABLE edge_replacements (
    edge_id uuid NOT NULL REFERENCES edges (id) ON DELETE CASCADE,
    replaced_by uuid NOT NULL REFERENCES edges (id) ON DELETE CASCADE,
    replaced_at timestamptz NOT NULL,
    PRIMARY KEY (edge_id, replaced_by)
);
CREATE INDEX edge_replacements_by ON edge_replacements (replaced_by);
