-- Generations of vectors beside the active one: one is built while another serves; then one transaction switches.
-- `thresholds` are cosines that belong to the model, in place of the settings'. `activations` counts how often a
-- generation became the active one: indexes outside of Postgres, which miss what changes meanwhile, begin anew.
ALTER TABLE embedding_generations ADD COLUMN thresholds jsonb;
ALTER TABLE embedding_generations ADD COLUMN activations integer NOT NULL DEFAULT 1;
ALTER TABLE embedding_generations ADD COLUMN retired_at timestamptz;
ALTER TABLE embedding_generations ADD COLUMN state text NOT NULL GENERATED ALWAYS AS (
    CASE WHEN is_active THEN 'active' WHEN retired_at IS NULL THEN 'building' ELSE 'retired' END
) STORED;
CREATE UNIQUE INDEX embedding_generations_one_of_each ON embedding_generations (model, dimension, normalised);

-- Entities and procedures have a vector of the model that was active when they were written in their row, and those of
-- other models here, so that a switch moves nothing. The hash tells whether the row still says what was embedded.
CREATE TABLE entity_embeddings (
    entity_id uuid NOT NULL REFERENCES entities ON DELETE CASCADE,
    generation smallint NOT NULL REFERENCES embedding_generations,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    text_hash bytea NOT NULL,
    embedding vector(384) NOT NULL,
    PRIMARY KEY (entity_id, generation)
);
CREATE INDEX entity_embeddings_scope ON entity_embeddings (tenant, workspace, namespace, generation);
CREATE INDEX entity_embeddings_embedding ON entity_embeddings
    USING hnsw (embedding vector_cosine_ops) WITH (m = 24, ef_construction = 128);
CREATE TABLE procedure_embeddings (
    procedure_id uuid NOT NULL REFERENCES procedures ON DELETE CASCADE,
    generation smallint NOT NULL REFERENCES embedding_generations,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    text_hash bytea NOT NULL,
    embedding vector(384) NOT NULL,
    PRIMARY KEY (procedure_id, generation)
);
CREATE INDEX procedure_embeddings_scope ON procedure_embeddings (tenant, workspace, namespace, generation);
CREATE INDEX procedure_embeddings_embedding ON procedure_embeddings
    USING hnsw (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 64);

-- For walks over all that a namespace has, as entities and notes have them.
CREATE INDEX messages_by_id ON messages (tenant, workspace, namespace, id);
CREATE INDEX passages_by_id ON passages (tenant, workspace, namespace, id);
CREATE INDEX procedures_by_id ON procedures (tenant, workspace, namespace, id) WHERE deleted_at IS NULL;
