-- Tier 4: entities, edges between them, and the links of memories. Nothing here is derived from the
-- graph store: it is a projection of these tables.

-- What stands in an index for a text that may be longer than an index can hold. `convert_to` counts as
-- changeable only because a database's encoding might; that of a database never does.
CREATE FUNCTION sha256_of(value text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN sha256(convert_to(value, 'UTF8'));

CREATE TABLE entities (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    key text NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    aliases text[] NOT NULL DEFAULT '{}',
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    is_asserted boolean NOT NULL DEFAULT false,
    generation smallint NOT NULL REFERENCES embedding_generations,
    embedding vector(384) NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX entities_one_of_each ON entities (tenant, workspace, namespace, sha256_of(key));
CREATE INDEX entities_embedding ON entities
    USING hnsw (embedding vector_cosine_ops) WITH (m = 24, ef_construction = 128);

-- Every name an entity is known by, as its words: what a text is looked up with.
CREATE TABLE entity_names (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    key text NOT NULL,
    entity_id uuid NOT NULL REFERENCES entities ON DELETE CASCADE
);
CREATE UNIQUE INDEX entity_names_one_of_each
    ON entity_names (tenant, workspace, namespace, sha256_of(key), entity_id);
CREATE INDEX entity_names_by_entity ON entity_names (entity_id);

-- A memory (message, note, passage) to an entity (about, mentions) or to a similar memory.
CREATE TABLE memory_links (
    from_id uuid NOT NULL,
    to_id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('about', 'mentions', 'similar')),
    from_tier smallint NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    source text NOT NULL,
    strength double precision NOT NULL CHECK (strength BETWEEN 0 AND 1),
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (from_id, to_id, kind)
);
CREATE INDEX memory_links_to ON memory_links (to_id, kind);
CREATE INDEX memory_links_by_source ON memory_links (to_id, sha256_of(source));

CREATE TABLE edges (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    from_id uuid NOT NULL REFERENCES entities ON DELETE CASCADE,
    to_id uuid NOT NULL REFERENCES entities ON DELETE CASCADE,
    type text NOT NULL,
    strength double precision NOT NULL CHECK (strength BETWEEN 0 AND 1),
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    UNIQUE (from_id, to_id, type)
);
CREATE INDEX edges_to ON edges (to_id);

-- What an edge rests on. An edge whose last evidence goes, goes with it.
CREATE TABLE edge_evidence (
    edge_id uuid NOT NULL REFERENCES edges ON DELETE CASCADE,
    source text NOT NULL,
    memory_id uuid,
    user_id text,
    strength double precision NOT NULL CHECK (strength BETWEEN 0 AND 1),
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    seen_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX edge_evidence_one_of_each
    ON edge_evidence (edge_id, sha256_of(source), memory_id, user_id) NULLS NOT DISTINCT;
CREATE INDEX edge_evidence_by_memory ON edge_evidence (memory_id) WHERE memory_id IS NOT NULL;
