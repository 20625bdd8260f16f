-- Rows of the graph that lie in the trash, by the entry that they come back with: an entity with its edges, or a fact, each
-- with the entities at the ends. What a memory says of them goes with the memory, and what a user does with the user.
CREATE TABLE discarded_entities (
    tenant text NOT NULL,
    entry uuid NOT NULL,
    id uuid NOT NULL,
    key text NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    aliases text[] NOT NULL,
    confidence float8 NOT NULL,
    is_asserted boolean NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    standing float8 NOT NULL,
    names text[] NOT NULL,
    witnesses text[] NOT NULL,
    PRIMARY KEY (tenant, entry, id),
    FOREIGN KEY (tenant, entry) REFERENCES trash (tenant, id) ON DELETE CASCADE
);
CREATE TABLE discarded_edges (
    tenant text NOT NULL,
    entry uuid NOT NULL,
    id uuid NOT NULL,
    from_id uuid NOT NULL,
    to_id uuid NOT NULL,
    type text NOT NULL,
    strength float8 NOT NULL,
    confidence float8 NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    standing float8 NOT NULL,
    recorded_at timestamptz NOT NULL,
    -- Pairs of edges, one of which is this one: that which ended, that in its place, and when.
    replacements jsonb NOT NULL,
    PRIMARY KEY (tenant, entry, id),
    FOREIGN KEY (tenant, entry) REFERENCES trash (tenant, id) ON DELETE CASCADE
);
CREATE TABLE discarded_evidence (
    tenant text NOT NULL,
    entry uuid NOT NULL,
    edge_id uuid NOT NULL,
    source text NOT NULL,
    witness text,
    memory_id uuid,
    user_id text,
    strength float8 NOT NULL,
    confidence float8 NOT NULL,
    seen_at timestamptz NOT NULL,
    FOREIGN KEY (tenant, entry, edge_id) REFERENCES discarded_edges (tenant, entry, id) ON DELETE CASCADE
);
CREATE INDEX discarded_evidence_of_edge ON discarded_evidence (tenant, entry, edge_id);
CREATE INDEX discarded_evidence_by_memory ON discarded_evidence (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX discarded_evidence_of_user ON discarded_evidence (tenant, user_id) WHERE user_id IS NOT NULL;
CREATE TABLE discarded_mentions (
    tenant text NOT NULL,
    entry uuid NOT NULL,
    from_id uuid NOT NULL,
    kind text NOT NULL,
    from_tier smallint NOT NULL,
    user_id text,
    source text NOT NULL,
    strength float8 NOT NULL,
    seen_at timestamptz NOT NULL,
    FOREIGN KEY (tenant, entry) REFERENCES trash (tenant, id) ON DELETE CASCADE
);
CREATE INDEX discarded_mentions_of_entry ON discarded_mentions (tenant, entry);
CREATE INDEX discarded_mentions_by_memory ON discarded_mentions (from_id);
CREATE INDEX discarded_mentions_of_user ON discarded_mentions (tenant, user_id) WHERE user_id IS NOT NULL;
