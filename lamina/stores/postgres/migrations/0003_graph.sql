-- Tier 4: entities, edges between them, and the links of memories. Nothing here is derived from the
-- graph store: it is a projection of these tables.
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
    last_seen_at timestamptz NOT NULL,
    UNIQUE (tenant, workspace, namespace, key)
);
CREATE INDEX entities_embedding ON entities
    USING hnsw (embedding vector_cosine_ops) WITH (m = 24, ef_construction = 128);

-- Every name an entity is known by, as its words: what a text is looked up with.
CREATE TABLE entity_names (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    key text NOT NULL,
    entity_id uuid NOT NULL REFERENCES entities ON DELETE CASCADE,
    PRIMARY KEY (tenant, workspace, namespace, key, entity_id)
);
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
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    seen_at timestamptz NOT NULL,
    UNIQUE NULLS NOT DISTINCT (edge_id, source, memory_id, user_id)
);
CREATE INDEX edge_evidence_by_memory ON edge_evidence (memory_id) WHERE memory_id IS NOT NULL;
