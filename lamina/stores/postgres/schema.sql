-- What the migrations add up to; written by `make schema`, compared by a test.

CREATE EXTENSION IF NOT EXISTS btree_gin WITH SCHEMA public;
COMMENT ON EXTENSION btree_gin IS 'support for indexing common datatypes in GIN';
CREATE EXTENSION IF NOT EXISTS unaccent WITH SCHEMA public;
COMMENT ON EXTENSION unaccent IS 'text search dictionary that removes accents';
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';
CREATE FUNCTION public.hash_user_of_key() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.user_hash := keyed_hash(NEW.tenant, NEW.user_id);
    NEW.user_id := NULL;
    RETURN NEW;
END
$$;
CREATE FUNCTION public.is_empty_place(tenant text, workspace text, namespace text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $_$
#variable_conflict use_column
BEGIN
    IF $3 = '' THEN
        RETURN NOT EXISTS (SELECT FROM epochs e WHERE e.tenant = $1 AND e.workspace = $2 AND e.namespace <> '')
            AND NOT EXISTS (SELECT FROM memory_profiles p WHERE p.tenant = $1 AND p.workspace = $2)
            AND NOT EXISTS (SELECT FROM response_agents a WHERE a.tenant = $1 AND a.workspace = $2)
            AND NOT EXISTS (SELECT FROM shares s WHERE s.tenant = $1 AND (s.from_workspace = $2 OR s.to_workspace = $2));
    END IF;
    RETURN NOT EXISTS (
            SELECT FROM notes n WHERE n.tenant = $1 AND n.workspace = $2 AND n.namespace = $3 AND n.deleted_at IS NULL)
        AND NOT EXISTS (
            SELECT FROM notes n WHERE n.tenant = $1 AND n.workspace = $2 AND n.namespace = $3
                AND n.deleted_at IS NOT NULL AND n.merged_into IS NULL)
        AND NOT EXISTS (SELECT FROM sessions s WHERE s.tenant = $1 AND s.workspace = $2 AND s.namespace = $3)
        AND NOT EXISTS (SELECT FROM messages m WHERE m.tenant = $1 AND m.workspace = $2 AND m.namespace = $3)
        AND NOT EXISTS (SELECT FROM documents d WHERE d.tenant = $1 AND d.workspace = $2 AND d.namespace = $3)
        AND NOT EXISTS (SELECT FROM profiles p WHERE p.tenant = $1 AND p.workspace = $2 AND p.namespace = $3)
        AND NOT EXISTS (SELECT FROM profile_versions v WHERE v.tenant = $1 AND v.workspace = $2 AND v.namespace = $3)
        AND NOT EXISTS (SELECT FROM entities e WHERE e.tenant = $1 AND e.workspace = $2 AND e.namespace = $3)
        AND NOT EXISTS (
            SELECT FROM procedures p
            WHERE p.tenant = $1 AND p.workspace = $2 AND p.namespace = $3 AND p.deleted_at IS NULL)
        AND NOT EXISTS (
            SELECT FROM procedures p
            WHERE p.tenant = $1 AND p.workspace = $2 AND p.namespace = $3 AND p.deleted_at IS NOT NULL)
        AND NOT EXISTS (SELECT FROM archived_notes a WHERE a.tenant = $1 AND a.workspace = $2 AND a.namespace = $3)
        AND NOT EXISTS (SELECT FROM archive_folders f WHERE f.tenant = $1 AND f.workspace = $2 AND f.namespace = $3)
        AND NOT EXISTS (SELECT FROM responses r WHERE r.tenant = $1 AND r.workspace = $2 AND r.namespace = $3)
        AND NOT EXISTS (
            SELECT FROM shares s WHERE s.tenant = $1 AND s.from_workspace = $2 AND s.from_namespace = $3);
END
$_$;
CREATE TABLE public.hash_secret (
    secret bytea NOT NULL
);
CREATE FUNCTION public.keyed_hash(tenant text, value text) RETURNS text
    LANGUAGE sql STABLE STRICT
    RETURN (SELECT ('h:'::text || encode(sha256((hash_secret.secret || sha256((hash_secret.secret || convert_to((json_build_array(keyed_hash.tenant, keyed_hash.value))::text, 'UTF8'::name))))), 'hex'::text)) FROM public.hash_secret);
CREATE FUNCTION public.make_note_words() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    SELECT to_tsvector('lamina', substr(n.content, NEW.text_start + 1, NEW.text_end - NEW.text_start)) INTO NEW.tsv
    FROM notes n WHERE n.id = NEW.note_id;
    RETURN NEW;
END
$$;
CREATE FUNCTION public.mark_events() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(
        1702258034, (SELECT ((last_value - (NOT is_called)::int) & 2147483647)::int FROM events_seq_seq));
    RETURN NULL;
END
$$;
CREATE FUNCTION public.remember_former_store() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM former_stores WHERE projection = NEW.projection AND store = NEW.store;
    INSERT INTO former_stores (projection, store) VALUES (OLD.projection, OLD.store)
    ON CONFLICT (projection, store) DO UPDATE SET left_at = now();
    RETURN NULL;
END
$$;
CREATE FUNCTION public.revive_rows(relation regclass, rows json) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
    names text;
BEGIN
    SELECT string_agg(quote_ident(attname), ', ') INTO names
    FROM pg_attribute
    WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped
      AND attname IN (SELECT json_object_keys(rows -> 0));
    EXECUTE format('INSERT INTO %1$s (%2$s) SELECT %2$s FROM json_populate_recordset(NULL::%1$s, $1)', relation, names)
    USING rows;
END
$_$;
CREATE FUNCTION public.settled_events() RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    newest bigint;
BEGIN
    SELECT last_value - (NOT is_called)::int INTO newest FROM events_seq_seq;
    RETURN newest - coalesce((
        SELECT max(behind)
        FROM pg_locks, LATERAL (SELECT ((newest & 2147483647) - objid::bigint) & 2147483647 AS behind) held
        WHERE locktype = 'advisory' AND classid = 1702258034 AND objsubid = 2 AND behind < 1073741824
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ), 0);
END
$$;
CREATE FUNCTION public.sha256_of(texts text[]) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN sha256(convert_to((array_to_json(texts))::text, 'UTF8'::name));
CREATE FUNCTION public.sha256_of(value text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN sha256(convert_to(value, 'UTF8'::name));
CREATE TEXT SEARCH CONFIGURATION public.lamina (
    PARSER = pg_catalog."default" );
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR asciiword WITH english_stem;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR word WITH public.unaccent, english_stem;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR numword WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR email WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR url WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR host WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR sfloat WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR version WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR hword_numpart WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR hword_part WITH public.unaccent, english_stem;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR hword_asciipart WITH english_stem;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR numhword WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR asciihword WITH english_stem;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR hword WITH public.unaccent, english_stem;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR url_path WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR file WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR "float" WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR "int" WITH simple;
ALTER TEXT SEARCH CONFIGURATION public.lamina
    ADD MAPPING FOR uint WITH simple;
CREATE TABLE public.agent_turns (
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    session_id text NOT NULL,
    user_id text,
    agent_id text,
    witness text,
    last_position bigint NOT NULL,
    digest bytea NOT NULL,
    tools text[] NOT NULL,
    failed_calls integer NOT NULL,
    provider text,
    model text,
    input_tokens bigint,
    cached_tokens bigint,
    output_tokens bigint,
    cost double precision,
    latency_ms double precision,
    succeeded boolean,
    score double precision,
    comment text,
    recorded_at timestamp with time zone NOT NULL,
    learnt_at timestamp with time zone,
    procedure_id uuid
);
CREATE TABLE public.api_keys (
    id uuid NOT NULL,
    tenant text NOT NULL,
    role text NOT NULL,
    label text NOT NULL,
    hint text NOT NULL,
    hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    revoked_at timestamp with time zone,
    verbs text[],
    workspaces text[],
    namespaces text[],
    users text[],
    agents text[],
    expires_at timestamp with time zone,
    rotated_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT api_keys_role_check CHECK ((role = ANY (ARRAY['reader'::text, 'writer'::text, 'admin'::text])))
);
CREATE TABLE public.archive_folders (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL
);
CREATE TABLE public.archive_identity (
    id uuid DEFAULT gen_random_uuid() NOT NULL
);
CREATE TABLE public.archived_notes (
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    content_hash bytea NOT NULL,
    file text NOT NULL,
    run_id uuid,
    archived_at timestamp with time zone NOT NULL,
    session_id text,
    drawn_from text,
    corrected_at timestamp with time zone
);
CREATE TABLE public.compacted_chunks (
    message_id uuid NOT NULL,
    chunk integer NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    session_id text NOT NULL,
    user_id text,
    occurred_at timestamp with time zone NOT NULL,
    text_start integer NOT NULL,
    text_end integer NOT NULL,
    generation smallint NOT NULL,
    embedding public.vector(384) NOT NULL
);
CREATE TABLE public.discarded_edges (
    tenant text NOT NULL,
    entry uuid NOT NULL,
    id uuid NOT NULL,
    from_id uuid NOT NULL,
    to_id uuid NOT NULL,
    type text NOT NULL,
    strength double precision NOT NULL,
    confidence double precision NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    standing double precision NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    replacements jsonb NOT NULL
);
CREATE TABLE public.discarded_entities (
    tenant text NOT NULL,
    entry uuid NOT NULL,
    id uuid NOT NULL,
    key text NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    aliases text[] NOT NULL,
    confidence double precision NOT NULL,
    is_asserted boolean NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    standing double precision NOT NULL,
    names text[] NOT NULL,
    witnesses text[] NOT NULL
);
CREATE TABLE public.discarded_evidence (
    tenant text NOT NULL,
    entry uuid NOT NULL,
    edge_id uuid NOT NULL,
    source text NOT NULL,
    witness text,
    memory_id uuid,
    user_id text,
    strength double precision NOT NULL,
    confidence double precision NOT NULL,
    seen_at timestamp with time zone NOT NULL
);
CREATE TABLE public.discarded_mentions (
    tenant text NOT NULL,
    entry uuid NOT NULL,
    from_id uuid NOT NULL,
    kind text NOT NULL,
    from_tier smallint NOT NULL,
    user_id text,
    source text NOT NULL,
    strength double precision NOT NULL,
    seen_at timestamp with time zone NOT NULL
);
CREATE TABLE public.documents (
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    agent_id text,
    key text NOT NULL,
    title text NOT NULL,
    media_type text NOT NULL,
    content text NOT NULL,
    content_hash bytea NOT NULL,
    characters integer NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    metadata json DEFAULT '{}'::jsonb NOT NULL,
    source text NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    event_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    sent_key text,
    path text,
    text_hash bytea,
    is_always boolean DEFAULT false NOT NULL,
    mirror text,
    importance double precision DEFAULT 0.5 NOT NULL
);
CREATE TABLE public.edge_evidence (
    edge_id uuid NOT NULL,
    source text NOT NULL,
    memory_id uuid,
    user_id text,
    strength double precision NOT NULL,
    confidence double precision NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    witness text,
    CONSTRAINT edge_evidence_confidence_check CHECK (((confidence >= (0)::double precision) AND (confidence <= (1)::double precision))),
    CONSTRAINT edge_evidence_strength_check CHECK (((strength >= (0)::double precision) AND (strength <= (1)::double precision)))
);
CREATE TABLE public.edge_replacements (
    edge_id uuid NOT NULL,
    replaced_by uuid NOT NULL,
    replaced_at timestamp with time zone NOT NULL
);
CREATE TABLE public.edges (
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    from_id uuid NOT NULL,
    to_id uuid NOT NULL,
    type text NOT NULL,
    strength double precision NOT NULL,
    confidence double precision NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    standing double precision DEFAULT 1 NOT NULL,
    valid_from timestamp with time zone,
    valid_to timestamp with time zone,
    replaced_by uuid,
    recorded_at timestamp with time zone DEFAULT now() NOT NULL,
    held_before tstzmultirange DEFAULT '{}'::tstzmultirange NOT NULL,
    CONSTRAINT edges_confidence_check CHECK (((confidence >= (0)::double precision) AND (confidence <= (1)::double precision))),
    CONSTRAINT edges_standing_check CHECK (((standing >= (0)::double precision) AND (standing <= (1)::double precision))),
    CONSTRAINT edges_strength_check CHECK (((strength >= (0)::double precision) AND (strength <= (1)::double precision)))
);
CREATE TABLE public.embedding_cache (
    tenant text NOT NULL,
    generation smallint NOT NULL,
    text_hash bytea NOT NULL,
    embedding bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY public.embedding_cache ALTER COLUMN embedding SET STORAGE EXTERNAL;
CREATE TABLE public.embedding_generations (
    generation smallint NOT NULL,
    model text NOT NULL,
    dimension integer NOT NULL,
    normalised boolean NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    thresholds jsonb,
    activations integer DEFAULT 1 NOT NULL,
    retired_at timestamp with time zone,
    state text GENERATED ALWAYS AS (
CASE
    WHEN is_active THEN 'active'::text
    WHEN (retired_at IS NULL) THEN 'building'::text
    ELSE 'retired'::text
END) STORED NOT NULL,
    CONSTRAINT embedding_generations_dimension_check CHECK ((dimension > 0))
);
ALTER TABLE public.embedding_generations ALTER COLUMN generation ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.embedding_generations_generation_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.entities (
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    key text NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    aliases text[] DEFAULT '{}'::text[] NOT NULL,
    confidence double precision NOT NULL,
    is_asserted boolean DEFAULT false NOT NULL,
    generation smallint NOT NULL,
    embedding public.vector(384) NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    standing double precision DEFAULT 1 NOT NULL,
    CONSTRAINT entities_confidence_check CHECK (((confidence >= (0)::double precision) AND (confidence <= (1)::double precision))),
    CONSTRAINT entities_standing_check CHECK (((standing >= (0)::double precision) AND (standing <= (1)::double precision)))
);
CREATE TABLE public.entity_embeddings (
    entity_id uuid NOT NULL,
    generation smallint NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    text_hash bytea NOT NULL,
    embedding public.vector(384) NOT NULL
);
CREATE TABLE public.entity_names (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    key text NOT NULL,
    entity_id uuid NOT NULL
);
CREATE TABLE public.entity_witnesses (
    entity_id uuid NOT NULL,
    witness text NOT NULL
);
CREATE TABLE public.epochs (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    epoch bigint DEFAULT 1 NOT NULL,
    outbox_seq bigint DEFAULT 0 NOT NULL,
    taught_at timestamp with time zone,
    emptied_at timestamp with time zone,
    emptied_epoch bigint,
    written_at timestamp with time zone,
    renaming uuid,
    former jsonb
);
CREATE TABLE public.erasures (
    id uuid NOT NULL,
    tenant text NOT NULL,
    user_id text,
    user_salt bytea NOT NULL,
    user_hash bytea NOT NULL,
    state text DEFAULT 'erasing'::text NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    emptied_at timestamp with time zone,
    completed_at timestamp with time zone,
    erased jsonb DEFAULT '{}'::jsonb NOT NULL,
    left_over jsonb DEFAULT '{}'::jsonb NOT NULL,
    audited jsonb DEFAULT '{}'::jsonb NOT NULL,
    waits_for jsonb DEFAULT '[]'::jsonb NOT NULL,
    receipt json,
    CONSTRAINT erasures_state_check CHECK ((state = ANY (ARRAY['erasing'::text, 'rewriting'::text, 'complete'::text])))
);
CREATE TABLE public.events (
    seq bigint NOT NULL,
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text,
    namespace text,
    user_id text,
    agent_id text,
    session_id text,
    kind text NOT NULL,
    memory_ids uuid[] DEFAULT '{}'::uuid[] NOT NULL,
    facts jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE SEQUENCE public.events_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.events_seq_seq OWNED BY public.events.seq;
CREATE TABLE public.feedback (
    memory_id uuid NOT NULL,
    tenant text NOT NULL,
    useful integer DEFAULT 0 NOT NULL,
    wrong integer DEFAULT 0 NOT NULL,
    pinned_at timestamp with time zone,
    workspace text,
    namespace text
);
CREATE TABLE public.file_versions (
    document_id uuid NOT NULL,
    version integer NOT NULL,
    content text NOT NULL,
    text_hash bytea NOT NULL,
    replaced_at timestamp with time zone NOT NULL
);
CREATE TABLE public.former_stores (
    projection text NOT NULL,
    store text NOT NULL,
    left_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.idempotency_keys (
    tenant text NOT NULL,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    response jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    user_id text,
    user_hash text
);
CREATE TABLE public.job_changes (
    run_id uuid NOT NULL,
    relation text NOT NULL,
    row_id uuid NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL
);
CREATE TABLE public.job_partitions (
    run_id uuid NOT NULL,
    partition integer NOT NULL,
    cursor jsonb,
    counts jsonb DEFAULT '{}'::jsonb NOT NULL,
    held jsonb DEFAULT '[]'::jsonb NOT NULL,
    problems jsonb DEFAULT '[]'::jsonb NOT NULL,
    is_done boolean DEFAULT false NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.job_runs (
    id uuid NOT NULL,
    job text NOT NULL,
    tenant text,
    workspace text,
    namespace text,
    state text NOT NULL,
    is_dry_run boolean NOT NULL,
    is_forced boolean NOT NULL,
    plan jsonb DEFAULT '{}'::jsonb NOT NULL,
    requested_by text NOT NULL,
    moment timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    undone_at timestamp with time zone,
    undone jsonb,
    error text,
    settings_digest text,
    CONSTRAINT job_runs_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text, 'stopped'::text, 'failed'::text, 'undoing'::text, 'undone'::text])))
);
CREATE TABLE public.memory_links (
    from_id uuid NOT NULL,
    to_id uuid NOT NULL,
    kind text NOT NULL,
    from_tier smallint NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    source text NOT NULL,
    strength double precision NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    CONSTRAINT memory_links_kind_check CHECK ((kind = ANY (ARRAY['about'::text, 'mentions'::text, 'similar'::text]))),
    CONSTRAINT memory_links_strength_check CHECK (((strength >= (0)::double precision) AND (strength <= (1)::double precision)))
);
CREATE TABLE public.memory_profiles (
    tenant text NOT NULL,
    workspace text NOT NULL,
    agent_id text NOT NULL,
    tiers text[] NOT NULL,
    max_context_chunks integer NOT NULL,
    min_relevance double precision NOT NULL,
    ttl_days double precision,
    prompt_suffix text DEFAULT ''::text NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    verified_at timestamp with time zone,
    shows_profile boolean DEFAULT true NOT NULL,
    CONSTRAINT memory_profiles_max_context_chunks_check CHECK ((max_context_chunks > 0)),
    CONSTRAINT memory_profiles_min_relevance_check CHECK (((min_relevance >= (0)::double precision) AND (min_relevance <= (1)::double precision))),
    CONSTRAINT memory_profiles_ttl_days_check CHECK ((ttl_days > (0)::double precision))
);
CREATE TABLE public.message_chunks (
    message_id uuid NOT NULL,
    chunk integer NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    session_id text NOT NULL,
    user_id text,
    occurred_at timestamp with time zone NOT NULL,
    text_start integer NOT NULL,
    text_end integer NOT NULL,
    generation smallint NOT NULL,
    embedding public.vector(384) NOT NULL
);
CREATE TABLE public.messages (
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    session_id text NOT NULL,
    user_id text,
    agent_id text,
    swarm_id text,
    "position" bigint NOT NULL,
    role text NOT NULL,
    name text,
    ref text,
    content text NOT NULL,
    content_hash bytea NOT NULL,
    metadata json DEFAULT '{}'::jsonb NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    is_summary boolean DEFAULT false NOT NULL,
    compacted_at timestamp with time zone,
    compacted_into uuid,
    importance double precision DEFAULT 0.5 NOT NULL,
    sent_hash bytea,
    CONSTRAINT messages_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'system'::text, 'tool'::text])))
);
CREATE TABLE public.note_chunks (
    note_id uuid NOT NULL,
    chunk integer NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    text_start integer NOT NULL,
    text_end integer NOT NULL,
    tsv tsvector,
    generation smallint NOT NULL,
    embedding public.vector(384) NOT NULL
);
CREATE TABLE public.note_sources (
    note_id uuid NOT NULL,
    source_id uuid NOT NULL
);
CREATE TABLE public.note_versions (
    note_id uuid NOT NULL,
    version integer NOT NULL,
    content text NOT NULL,
    category text NOT NULL,
    importance double precision NOT NULL,
    confidence double precision NOT NULL,
    tags text[] NOT NULL,
    metadata json NOT NULL,
    written_at timestamp with time zone NOT NULL
);
CREATE TABLE public.notes (
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    agent_id text,
    session_id text,
    swarm_id text,
    category text NOT NULL,
    content text NOT NULL,
    content_hash bytea NOT NULL,
    importance double precision NOT NULL,
    confidence double precision NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    metadata json DEFAULT '{}'::jsonb NOT NULL,
    source text NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    hits bigint DEFAULT 1 NOT NULL,
    event_at timestamp with time zone NOT NULL,
    last_hit_at timestamp with time zone DEFAULT now() NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    deleted_at timestamp with time zone,
    temperature text DEFAULT 'warm'::text NOT NULL,
    temperature_changed_at timestamp with time zone DEFAULT now() NOT NULL,
    weight double precision DEFAULT 1 NOT NULL,
    expires_at timestamp with time zone,
    merged_into uuid,
    raised_by text[] DEFAULT '{}'::text[] NOT NULL,
    speakers text[],
    CONSTRAINT notes_category_check CHECK ((category = ANY (ARRAY['decision'::text, 'outcome'::text, 'strategy'::text, 'note'::text, 'interaction'::text, 'fact'::text, 'preference'::text, 'skill'::text, 'insight'::text]))),
    CONSTRAINT notes_confidence_check CHECK (((confidence >= (0)::double precision) AND (confidence <= (1)::double precision))),
    CONSTRAINT notes_importance_check CHECK (((importance >= (0)::double precision) AND (importance <= (1)::double precision))),
    CONSTRAINT notes_temperature_check CHECK ((temperature = ANY (ARRAY['warm'::text, 'cold'::text]))),
    CONSTRAINT notes_weight_check CHECK (((weight >= (0)::double precision) AND (weight <= (1)::double precision)))
)
WITH (fillfactor='90');
CREATE TABLE public.operations (
    id uuid NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL,
    workspace text,
    namespace text,
    user_id text,
    agent_id text,
    session_id text,
    request json NOT NULL,
    state text DEFAULT 'running'::text NOT NULL,
    cursor uuid,
    counts jsonb DEFAULT '{}'::jsonb NOT NULL,
    waits_for text,
    requested_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    retry_at timestamp with time zone,
    receipt json
);
CREATE TABLE public.outbox (
    seq bigint NOT NULL,
    projection text NOT NULL,
    memory_id uuid NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    tenant text,
    workspace text,
    namespace text
);
ALTER TABLE public.outbox ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.outbox_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.passage_chunks (
    passage_id uuid NOT NULL,
    chunk integer NOT NULL,
    text_start integer NOT NULL,
    text_end integer NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    tsv tsvector DEFAULT ''::tsvector NOT NULL,
    generation smallint NOT NULL,
    embedding public.vector(384) NOT NULL
);
CREATE TABLE public.passages (
    id uuid NOT NULL,
    document_id uuid NOT NULL,
    "position" integer NOT NULL,
    content text NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    heading text,
    page integer,
    text_start integer NOT NULL,
    text_end integer NOT NULL,
    line_start integer,
    line_end integer
);
CREATE TABLE public.procedure_embeddings (
    procedure_id uuid NOT NULL,
    generation smallint NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    text_hash bytea NOT NULL,
    embedding public.vector(384) NOT NULL
);
CREATE TABLE public.procedure_outcomes (
    id uuid NOT NULL,
    procedure_id uuid NOT NULL,
    run text,
    succeeded boolean NOT NULL,
    comment text,
    agent_id text,
    reported_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.procedure_witnesses (
    procedure_id uuid NOT NULL,
    witness text NOT NULL,
    successes bigint DEFAULT 0 NOT NULL,
    failures bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.procedures (
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    agent_id text,
    trigger text NOT NULL,
    trigger_key text NOT NULL,
    action text NOT NULL,
    content_hash bytea NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    metadata json DEFAULT '{}'::jsonb NOT NULL,
    source text NOT NULL,
    strength double precision DEFAULT 0.5 NOT NULL,
    successes bigint DEFAULT 0 NOT NULL,
    failures bigint DEFAULT 0 NOT NULL,
    tsv tsvector NOT NULL,
    generation smallint NOT NULL,
    embedding public.vector(384) NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone,
    deleted_at timestamp with time zone,
    user_id text,
    state text DEFAULT 'active'::text NOT NULL,
    is_learnt boolean DEFAULT false NOT NULL,
    is_private boolean DEFAULT false NOT NULL,
    is_decided boolean DEFAULT false NOT NULL,
    CONSTRAINT procedures_state_check CHECK ((state = ANY (ARRAY['proposed'::text, 'active'::text, 'dropped'::text]))),
    CONSTRAINT procedures_strength_check CHECK (((strength >= (0)::double precision) AND (strength <= (1)::double precision)))
);
CREATE TABLE public.profile_versions (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text NOT NULL,
    version integer NOT NULL,
    patch json NOT NULL,
    document json NOT NULL,
    written_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.profiles (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text NOT NULL,
    document json NOT NULL,
    version integer NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    field_times jsonb DEFAULT '{}'::jsonb NOT NULL,
    verified_fields text[],
    verified_version integer
);
CREATE TABLE public.projection_stores (
    projection text NOT NULL,
    store text,
    filled_at timestamp with time zone,
    build integer DEFAULT 0 NOT NULL,
    building_until bigint,
    ordered_at timestamp with time zone,
    words_version smallint DEFAULT 1 NOT NULL,
    mark bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.provider_cache_metrics (
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    agent text,
    provider text NOT NULL,
    model text NOT NULL,
    input_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    hit_rate double precision GENERATED ALWAYS AS (((cached_tokens)::double precision / (NULLIF(input_tokens, 0))::double precision)) STORED,
    recorded_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT provider_cache_metrics_check CHECK (((cached_tokens >= 0) AND (cached_tokens <= input_tokens))),
    CONSTRAINT provider_cache_metrics_input_tokens_check CHECK ((input_tokens >= 0))
);
CREATE UNLOGGED TABLE public.quota_windows (
    tenant text NOT NULL,
    subject text NOT NULL,
    resource text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    granted bigint NOT NULL
);
CREATE TABLE public.quotas (
    tenant text NOT NULL,
    subject text NOT NULL,
    resource text NOT NULL,
    amount bigint,
    CONSTRAINT quotas_amount_check CHECK ((amount >= 0))
);
CREATE TABLE public.receipt_keys (
    id text NOT NULL,
    public_key bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.refused_texts (
    generation smallint NOT NULL,
    id uuid NOT NULL
);
CREATE TABLE public.response_agents (
    tenant text NOT NULL,
    workspace text NOT NULL,
    agent text NOT NULL,
    epoch bigint NOT NULL,
    writes bigint NOT NULL,
    prompt_version text,
    lookups bigint DEFAULT 0 NOT NULL,
    hits bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL,
    put_at timestamp with time zone NOT NULL
);
CREATE TABLE public.response_chains (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    chain text NOT NULL,
    session_id text NOT NULL,
    user_id text,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.responses (
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    agent text NOT NULL,
    user_id text,
    circumstances bytea NOT NULL,
    digest bytea NOT NULL,
    query text NOT NULL,
    response json NOT NULL,
    generation smallint NOT NULL,
    embedding public.vector(384),
    agent_epoch bigint NOT NULL,
    workspace_epoch bigint NOT NULL,
    workspace_writes bigint NOT NULL,
    size_bytes bigint NOT NULL,
    hits bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone,
    is_verified boolean,
    user_profile text
);
ALTER TABLE ONLY public.responses ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE TABLE public.schema_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.sessions (
    tenant text NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    session_id text NOT NULL,
    next_position bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.shares (
    id uuid NOT NULL,
    tenant text NOT NULL,
    from_workspace text NOT NULL,
    from_namespace text NOT NULL,
    to_workspace text NOT NULL,
    segment text NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    label text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT shares_segment_check CHECK ((segment = ANY (ARRAY['notes'::text, 'graph'::text, 'procedures'::text, 'documents'::text])))
);
CREATE TABLE public.stale_words (
    relation text NOT NULL,
    id uuid NOT NULL
);
CREATE UNLOGGED TABLE public.tenant_usage (
    tenant text NOT NULL,
    rows bigint NOT NULL,
    bytes bigint NOT NULL,
    documents bigint NOT NULL,
    namespaces bigint NOT NULL,
    counted_at timestamp with time zone NOT NULL,
    took_s double precision NOT NULL
);
CREATE TABLE public.trash (
    tenant text NOT NULL,
    id uuid NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    agent_id text,
    kind text NOT NULL,
    content_hash bytea,
    rows json,
    deleted_at timestamp with time zone NOT NULL,
    operation_id uuid,
    title text
);
CREATE TABLE public.usage_days (
    tenant text NOT NULL,
    day date NOT NULL,
    requests bigint DEFAULT 0 NOT NULL,
    searches bigint DEFAULT 0 NOT NULL,
    turns bigint DEFAULT 0 NOT NULL,
    embedded_tokens bigint DEFAULT 0 NOT NULL,
    model_tokens bigint DEFAULT 0 NOT NULL,
    bytes bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.votes (
    tenant text NOT NULL,
    memory_id uuid NOT NULL,
    voter text NOT NULL,
    is_useful boolean NOT NULL,
    voted_at timestamp with time zone NOT NULL
);
CREATE TABLE public.webhook_dead_letters (
    webhook_id uuid NOT NULL,
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    attempts integer NOT NULL,
    error text NOT NULL,
    died_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    is_due boolean DEFAULT false NOT NULL
);
CREATE TABLE public.webhooks (
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text,
    url text NOT NULL,
    kinds text[] DEFAULT '{}'::text[] NOT NULL,
    secrets jsonb NOT NULL,
    "position" bigint NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    claimed_by uuid,
    claimed_until timestamp with time zone,
    delivered bigint DEFAULT 0 NOT NULL,
    delivered_at timestamp with time zone,
    last_error text,
    failed_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE TABLE public.workspace_settings (
    tenant text NOT NULL,
    workspace text NOT NULL,
    settings jsonb NOT NULL,
    updated_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY public.events ALTER COLUMN seq SET DEFAULT nextval('public.events_seq_seq'::regclass);
ALTER TABLE ONLY public.agent_turns
    ADD CONSTRAINT agent_turns_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.archive_folders
    ADD CONSTRAINT archive_folders_pkey PRIMARY KEY (tenant, workspace, namespace);
ALTER TABLE ONLY public.archive_identity
    ADD CONSTRAINT archive_identity_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.archived_notes
    ADD CONSTRAINT archived_notes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.compacted_chunks
    ADD CONSTRAINT compacted_chunks_pkey PRIMARY KEY (message_id, generation, chunk);
ALTER TABLE ONLY public.discarded_edges
    ADD CONSTRAINT discarded_edges_pkey PRIMARY KEY (tenant, entry, id);
ALTER TABLE ONLY public.discarded_entities
    ADD CONSTRAINT discarded_entities_pkey PRIMARY KEY (tenant, entry, id);
ALTER TABLE ONLY public.documents
    ADD CONSTRAINT documents_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.edge_replacements
    ADD CONSTRAINT edge_replacements_pkey PRIMARY KEY (edge_id, replaced_by);
ALTER TABLE ONLY public.edges
    ADD CONSTRAINT edges_from_id_to_id_type_key UNIQUE (from_id, to_id, type);
ALTER TABLE ONLY public.edges
    ADD CONSTRAINT edges_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.embedding_cache
    ADD CONSTRAINT embedding_cache_pkey PRIMARY KEY (tenant, generation, text_hash);
ALTER TABLE ONLY public.embedding_generations
    ADD CONSTRAINT embedding_generations_pkey PRIMARY KEY (generation);
ALTER TABLE ONLY public.entities
    ADD CONSTRAINT entities_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.entity_embeddings
    ADD CONSTRAINT entity_embeddings_pkey PRIMARY KEY (entity_id, generation);
ALTER TABLE ONLY public.entity_witnesses
    ADD CONSTRAINT entity_witnesses_pkey PRIMARY KEY (entity_id, witness);
ALTER TABLE ONLY public.epochs
    ADD CONSTRAINT epochs_pkey PRIMARY KEY (tenant, workspace, namespace);
ALTER TABLE ONLY public.erasures
    ADD CONSTRAINT erasures_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (tenant, seq);
ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (memory_id);
ALTER TABLE ONLY public.file_versions
    ADD CONSTRAINT file_versions_pkey PRIMARY KEY (document_id, version);
ALTER TABLE ONLY public.former_stores
    ADD CONSTRAINT former_stores_pkey PRIMARY KEY (projection, store);
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant, key);
ALTER TABLE ONLY public.job_changes
    ADD CONSTRAINT job_changes_pkey PRIMARY KEY (run_id, relation, row_id);
ALTER TABLE ONLY public.job_partitions
    ADD CONSTRAINT job_partitions_pkey PRIMARY KEY (run_id, partition);
ALTER TABLE ONLY public.job_runs
    ADD CONSTRAINT job_runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.memory_links
    ADD CONSTRAINT memory_links_pkey PRIMARY KEY (from_id, to_id, kind);
ALTER TABLE ONLY public.memory_profiles
    ADD CONSTRAINT memory_profiles_pkey PRIMARY KEY (tenant, workspace, agent_id);
ALTER TABLE ONLY public.message_chunks
    ADD CONSTRAINT message_chunks_pkey PRIMARY KEY (message_id, generation, chunk);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.note_chunks
    ADD CONSTRAINT note_chunks_pkey PRIMARY KEY (note_id, generation, chunk);
ALTER TABLE ONLY public.note_sources
    ADD CONSTRAINT note_sources_pkey PRIMARY KEY (note_id, source_id);
ALTER TABLE ONLY public.note_versions
    ADD CONSTRAINT note_versions_pkey PRIMARY KEY (note_id, version);
ALTER TABLE ONLY public.notes
    ADD CONSTRAINT notes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.operations
    ADD CONSTRAINT operations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.passage_chunks
    ADD CONSTRAINT passage_chunks_pkey PRIMARY KEY (passage_id, generation, chunk);
ALTER TABLE ONLY public.passages
    ADD CONSTRAINT passages_document_id_position_key UNIQUE (document_id, "position");
ALTER TABLE ONLY public.passages
    ADD CONSTRAINT passages_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.procedure_embeddings
    ADD CONSTRAINT procedure_embeddings_pkey PRIMARY KEY (procedure_id, generation);
ALTER TABLE ONLY public.procedure_outcomes
    ADD CONSTRAINT procedure_outcomes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.procedure_outcomes
    ADD CONSTRAINT procedure_outcomes_procedure_id_run_key UNIQUE (procedure_id, run);
ALTER TABLE ONLY public.procedure_witnesses
    ADD CONSTRAINT procedure_witnesses_pkey PRIMARY KEY (procedure_id, witness);
ALTER TABLE ONLY public.procedures
    ADD CONSTRAINT procedures_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.profile_versions
    ADD CONSTRAINT profile_versions_pkey PRIMARY KEY (tenant, workspace, namespace, user_id, version);
ALTER TABLE ONLY public.profiles
    ADD CONSTRAINT profiles_pkey PRIMARY KEY (tenant, workspace, namespace, user_id);
ALTER TABLE ONLY public.projection_stores
    ADD CONSTRAINT projection_stores_pkey PRIMARY KEY (projection);
ALTER TABLE ONLY public.provider_cache_metrics
    ADD CONSTRAINT provider_cache_metrics_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.quota_windows
    ADD CONSTRAINT quota_windows_pkey PRIMARY KEY (tenant, subject, resource);
ALTER TABLE ONLY public.quotas
    ADD CONSTRAINT quotas_pkey PRIMARY KEY (tenant, subject, resource);
ALTER TABLE ONLY public.receipt_keys
    ADD CONSTRAINT receipt_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.refused_texts
    ADD CONSTRAINT refused_texts_pkey PRIMARY KEY (generation, id);
ALTER TABLE ONLY public.response_agents
    ADD CONSTRAINT response_agents_pkey PRIMARY KEY (tenant, workspace, agent);
ALTER TABLE ONLY public.response_chains
    ADD CONSTRAINT response_chains_pkey PRIMARY KEY (tenant, workspace, namespace, chain);
ALTER TABLE ONLY public.responses
    ADD CONSTRAINT responses_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (tenant, workspace, namespace, session_id);
ALTER TABLE ONLY public.shares
    ADD CONSTRAINT shares_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.stale_words
    ADD CONSTRAINT stale_words_pkey PRIMARY KEY (relation, id);
ALTER TABLE ONLY public.tenant_usage
    ADD CONSTRAINT tenant_usage_pkey PRIMARY KEY (tenant);
ALTER TABLE ONLY public.trash
    ADD CONSTRAINT trash_pkey PRIMARY KEY (tenant, id);
ALTER TABLE ONLY public.usage_days
    ADD CONSTRAINT usage_days_pkey PRIMARY KEY (tenant, day);
ALTER TABLE ONLY public.votes
    ADD CONSTRAINT votes_pkey PRIMARY KEY (memory_id, voter);
ALTER TABLE ONLY public.webhook_dead_letters
    ADD CONSTRAINT webhook_dead_letters_pkey PRIMARY KEY (webhook_id, seq);
ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.workspace_settings
    ADD CONSTRAINT workspace_settings_pkey PRIMARY KEY (tenant, workspace);
CREATE INDEX agent_turns_by_procedure ON public.agent_turns USING btree (procedure_id) WHERE (procedure_id IS NOT NULL);
CREATE INDEX agent_turns_by_time ON public.agent_turns USING btree (tenant, workspace, namespace, recorded_at, id);
CREATE INDEX agent_turns_by_user ON public.agent_turns USING btree (tenant, user_id) WHERE (user_id IS NOT NULL);
CREATE UNIQUE INDEX agent_turns_one_of_each ON public.agent_turns USING btree (tenant, workspace, namespace, session_id, user_id, last_position, digest) NULLS NOT DISTINCT;
CREATE INDEX agent_turns_to_learn ON public.agent_turns USING btree (tenant, workspace, namespace, recorded_at, id) WHERE ((succeeded IS NOT NULL) AND (learnt_at IS NULL));
CREATE INDEX api_keys_of_tenant ON public.api_keys USING btree (tenant);
CREATE INDEX archived_notes_by_file ON public.archived_notes USING btree (file);
CREATE INDEX archived_notes_by_run ON public.archived_notes USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE INDEX archived_notes_drawn ON public.archived_notes USING btree (tenant, drawn_from) WHERE (drawn_from IS NOT NULL);
CREATE INDEX archived_notes_of_scope ON public.archived_notes USING btree (tenant, workspace, namespace, id);
CREATE INDEX discarded_evidence_by_memory ON public.discarded_evidence USING btree (memory_id) WHERE (memory_id IS NOT NULL);
CREATE INDEX discarded_evidence_of_edge ON public.discarded_evidence USING btree (tenant, entry, edge_id);
CREATE INDEX discarded_evidence_of_user ON public.discarded_evidence USING btree (tenant, user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX discarded_mentions_by_memory ON public.discarded_mentions USING btree (from_id);
CREATE INDEX discarded_mentions_of_entry ON public.discarded_mentions USING btree (tenant, entry);
CREATE INDEX discarded_mentions_of_user ON public.discarded_mentions USING btree (tenant, user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX documents_always ON public.documents USING btree (tenant, workspace, namespace) WHERE is_always;
CREATE INDEX documents_by_agent ON public.documents USING btree (tenant, workspace, namespace, agent_id, id) WHERE (agent_id IS NOT NULL);
CREATE INDEX documents_by_event ON public.documents USING btree (tenant, workspace, namespace, event_at, id);
CREATE INDEX documents_by_path ON public.documents USING btree (tenant, workspace, namespace, path COLLATE "C") WHERE (path IS NOT NULL);
CREATE UNIQUE INDEX documents_one_of_each ON public.documents USING btree (tenant, workspace, namespace, user_id, key) NULLS NOT DISTINCT;
CREATE INDEX edge_evidence_by_memory ON public.edge_evidence USING btree (memory_id) WHERE (memory_id IS NOT NULL);
CREATE UNIQUE INDEX edge_evidence_one_of_each ON public.edge_evidence USING btree (edge_id, public.sha256_of(source), memory_id, user_id) NULLS NOT DISTINCT;
CREATE INDEX edge_replacements_by ON public.edge_replacements USING btree (replaced_by);
CREATE INDEX edges_by_id ON public.edges USING btree (tenant, workspace, namespace, id);
CREATE INDEX edges_to ON public.edges USING btree (to_id);
CREATE INDEX embedding_cache_last_used ON public.embedding_cache USING btree (last_used_at);
CREATE UNIQUE INDEX embedding_generations_one_active ON public.embedding_generations USING btree (is_active) WHERE is_active;
CREATE UNIQUE INDEX embedding_generations_one_of_each ON public.embedding_generations USING btree (model, dimension, normalised);
CREATE INDEX entities_by_id ON public.entities USING btree (tenant, workspace, namespace, id);
CREATE INDEX entities_embedding ON public.entities USING hnsw (embedding public.vector_cosine_ops) WITH (m='24', ef_construction='128');
CREATE UNIQUE INDEX entities_one_of_each ON public.entities USING btree (tenant, workspace, namespace, public.sha256_of(key));
CREATE INDEX entity_embeddings_embedding ON public.entity_embeddings USING hnsw (embedding public.vector_cosine_ops) WITH (m='24', ef_construction='128');
CREATE INDEX entity_embeddings_scope ON public.entity_embeddings USING btree (tenant, workspace, namespace, generation);
CREATE INDEX entity_names_by_entity ON public.entity_names USING btree (entity_id);
CREATE UNIQUE INDEX entity_names_one_of_each ON public.entity_names USING btree (tenant, workspace, namespace, public.sha256_of(key), entity_id);
CREATE INDEX entity_names_openings ON public.entity_names USING btree (tenant, workspace, namespace, public.sha256_of(split_part(key, ' '::text, 1)));
CREATE INDEX erasures_of_tenant ON public.erasures USING btree (tenant, requested_at);
CREATE UNIQUE INDEX erasures_one_of_each ON public.erasures USING btree (tenant, user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX erasures_open ON public.erasures USING btree (requested_at) WHERE (state <> 'complete'::text);
CREATE INDEX events_by_id ON public.events USING btree (tenant, id);
CREATE INDEX events_by_time ON public.events USING brin (created_at);
CREATE INDEX events_of_memories ON public.events USING gin (memory_ids) WITH (fastupdate=off);
CREATE INDEX events_of_user ON public.events USING btree (tenant, user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX feedback_of_place ON public.feedback USING btree (tenant, workspace, namespace, pinned_at);
CREATE INDEX idempotency_keys_by_age ON public.idempotency_keys USING btree (tenant, created_at);
CREATE INDEX idempotency_keys_by_user ON public.idempotency_keys USING btree (tenant, user_hash) WHERE (user_hash IS NOT NULL);
CREATE INDEX job_runs_by_job ON public.job_runs USING btree (job, created_at DESC);
CREATE INDEX job_runs_open ON public.job_runs USING btree (created_at) WHERE (state = ANY (ARRAY['queued'::text, 'running'::text, 'undoing'::text]));
CREATE INDEX memory_links_by_source ON public.memory_links USING btree (to_id, public.sha256_of(source));
CREATE INDEX memory_links_to ON public.memory_links USING btree (to_id, kind);
CREATE INDEX message_chunks_embedding ON public.message_chunks USING hnsw (embedding public.vector_cosine_ops) WITH (m='8', ef_construction='64');
CREATE INDEX message_chunks_scope ON public.message_chunks USING btree (tenant, workspace, namespace, session_id);
CREATE INDEX messages_as_sent ON public.messages USING btree (tenant, workspace, namespace, session_id, sent_hash) WHERE (sent_hash IS NOT NULL);
CREATE INDEX messages_by_agent ON public.messages USING btree (tenant, workspace, namespace, agent_id, id) WHERE (agent_id IS NOT NULL);
CREATE INDEX messages_by_id ON public.messages USING btree (tenant, workspace, namespace, id);
CREATE INDEX messages_by_user ON public.messages USING btree (tenant, workspace, namespace, user_id, session_id);
CREATE UNIQUE INDEX messages_one_at_each_position ON public.messages USING btree (tenant, workspace, namespace, session_id, "position") WHERE (NOT is_summary);
CREATE UNIQUE INDEX messages_one_of_each ON public.messages USING btree (tenant, workspace, namespace, session_id, content_hash, user_id) NULLS NOT DISTINCT;
CREATE INDEX messages_summaries ON public.messages USING btree (tenant, workspace, namespace, session_id, "position") WHERE is_summary;
CREATE INDEX note_chunks_embedding ON public.note_chunks USING hnsw (embedding public.vector_cosine_ops) WITH (m='16', ef_construction='64') WHERE (tsv IS NOT NULL);
CREATE INDEX note_chunks_words ON public.note_chunks USING gin (tenant, workspace, namespace, tsv) WHERE (tsv IS NOT NULL);
CREATE INDEX note_sources_by_source ON public.note_sources USING btree (source_id);
CREATE INDEX notes_by_age ON public.notes USING btree (tenant, workspace, namespace, created_at, id) WHERE (deleted_at IS NULL);
CREATE INDEX notes_by_agent ON public.notes USING btree (tenant, workspace, namespace, agent_id, id) WHERE ((agent_id IS NOT NULL) AND (deleted_at IS NULL));
CREATE INDEX notes_by_event ON public.notes USING btree (tenant, workspace, namespace, event_at DESC, id DESC) WHERE (deleted_at IS NULL);
CREATE INDEX notes_by_id ON public.notes USING btree (tenant, workspace, namespace, id) WHERE (deleted_at IS NULL);
CREATE INDEX notes_by_session ON public.notes USING btree (tenant, workspace, namespace, session_id, id) WHERE ((session_id IS NOT NULL) AND (deleted_at IS NULL));
CREATE INDEX notes_changed ON public.notes USING btree (tenant, workspace, namespace, id) WHERE ((version > 1) AND (deleted_at IS NULL));
CREATE INDEX notes_deleted ON public.notes USING btree (tenant, workspace, namespace, id) WHERE ((deleted_at IS NOT NULL) AND (merged_into IS NULL));
CREATE INDEX notes_expiring ON public.notes USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (deleted_at IS NULL));
CREATE INDEX notes_merged ON public.notes USING btree (merged_into) WHERE (merged_into IS NOT NULL);
CREATE UNIQUE INDEX notes_one_of_each ON public.notes USING btree (tenant, workspace, namespace, user_id, content_hash) NULLS NOT DISTINCT WHERE (deleted_at IS NULL);
CREATE INDEX operations_of_tenant ON public.operations USING btree (tenant, id DESC);
CREATE INDEX operations_of_user ON public.operations USING btree (tenant, user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX operations_open ON public.operations USING btree (requested_at, id) WHERE (state = 'running'::text);
CREATE INDEX outbox_by_projection ON public.outbox USING btree (projection, seq);
CREATE INDEX outbox_by_tenant ON public.outbox USING btree (projection, tenant, seq);
CREATE INDEX passage_chunks_embedding ON public.passage_chunks USING hnsw (embedding public.vector_cosine_ops) WITH (m='16', ef_construction='64');
CREATE INDEX passage_chunks_words ON public.passage_chunks USING gin (tenant, workspace, namespace, tsv);
CREATE INDEX passages_by_id ON public.passages USING btree (tenant, workspace, namespace, id);
CREATE INDEX procedure_embeddings_embedding ON public.procedure_embeddings USING hnsw (embedding public.vector_cosine_ops) WITH (m='16', ef_construction='64');
CREATE INDEX procedure_embeddings_scope ON public.procedure_embeddings USING btree (tenant, workspace, namespace, generation);
CREATE INDEX procedures_by_age ON public.procedures USING btree (tenant, workspace, namespace, created_at, id) WHERE (deleted_at IS NULL);
CREATE INDEX procedures_by_agent ON public.procedures USING btree (tenant, workspace, namespace, agent_id, id) WHERE ((agent_id IS NOT NULL) AND (deleted_at IS NULL));
CREATE INDEX procedures_by_id ON public.procedures USING btree (tenant, workspace, namespace, id) WHERE (deleted_at IS NULL);
CREATE INDEX procedures_by_user ON public.procedures USING btree (tenant, user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX procedures_deleted ON public.procedures USING btree (tenant, workspace, namespace, id) WHERE (deleted_at IS NOT NULL);
CREATE INDEX procedures_embedding ON public.procedures USING hnsw (embedding public.vector_cosine_ops) WITH (m='16', ef_construction='64');
CREATE INDEX procedures_learnt ON public.procedures USING btree (tenant, workspace, namespace, id) WHERE (is_learnt AND (deleted_at IS NULL));
CREATE UNIQUE INDEX procedures_one_of_each ON public.procedures USING btree (tenant, workspace, namespace, content_hash) WHERE (deleted_at IS NULL);
CREATE INDEX procedures_prefix ON public.procedures USING btree (tenant, workspace, namespace, trigger_key text_pattern_ops) WHERE (deleted_at IS NULL);
CREATE INDEX procedures_words ON public.procedures USING gin (tenant, workspace, namespace, tsv) WHERE (deleted_at IS NULL);
CREATE INDEX provider_cache_metrics_by_time ON public.provider_cache_metrics USING brin (recorded_at);
CREATE INDEX provider_cache_metrics_of_tenant ON public.provider_cache_metrics USING btree (tenant, recorded_at);
CREATE INDEX response_chains_by_age ON public.response_chains USING btree (tenant, created_at);
CREATE INDEX response_chains_by_session ON public.response_chains USING btree (tenant, workspace, namespace, session_id);
CREATE INDEX response_chains_by_user ON public.response_chains USING btree (tenant, user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX responses_of_agent ON public.responses USING btree (tenant, workspace, agent, circumstances);
CREATE UNIQUE INDEX responses_one_of_each ON public.responses USING btree (digest);
CREATE INDEX sessions_by_age ON public.sessions USING btree (tenant, workspace, namespace, created_at, session_id);
CREATE INDEX shares_into ON public.shares USING btree (tenant, to_workspace) WHERE (revoked_at IS NULL);
CREATE UNIQUE INDEX shares_one_of_each ON public.shares USING btree (tenant, from_workspace, from_namespace, to_workspace, segment, public.sha256_of(tags)) WHERE (revoked_at IS NULL);
CREATE INDEX trash_of_operation ON public.trash USING btree (tenant, operation_id, id) WHERE (operation_id IS NOT NULL);
CREATE INDEX trash_of_scope ON public.trash USING btree (tenant, workspace, namespace, deleted_at DESC);
CREATE INDEX trash_of_text ON public.trash USING btree (tenant, workspace, namespace, kind, content_hash);
CREATE INDEX trash_of_user ON public.trash USING btree (tenant, user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX webhooks_due ON public.webhooks USING btree (next_at);
CREATE INDEX webhooks_of_tenant ON public.webhooks USING btree (tenant, created_at);
CREATE TRIGGER events_marked BEFORE INSERT ON public.events FOR EACH STATEMENT EXECUTE FUNCTION public.mark_events();
CREATE TRIGGER idempotency_keys_hashed BEFORE INSERT ON public.idempotency_keys FOR EACH ROW WHEN ((new.user_id IS NOT NULL)) EXECUTE FUNCTION public.hash_user_of_key();
CREATE TRIGGER note_words BEFORE INSERT OR UPDATE OF tsv ON public.note_chunks FOR EACH ROW WHEN ((new.tsv IS NOT NULL)) EXECUTE FUNCTION public.make_note_words();
ALTER TABLE public.note_chunks DISABLE TRIGGER note_words;
CREATE TRIGGER projection_stores_former AFTER UPDATE OF store ON public.projection_stores FOR EACH ROW WHEN (((old.store IS NOT NULL) AND (old.store IS DISTINCT FROM new.store))) EXECUTE FUNCTION public.remember_former_store();
ALTER TABLE ONLY public.agent_turns
    ADD CONSTRAINT agent_turns_procedure_id_fkey FOREIGN KEY (procedure_id) REFERENCES public.procedures(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.compacted_chunks
    ADD CONSTRAINT compacted_chunks_generation_fkey FOREIGN KEY (generation) REFERENCES public.embedding_generations(generation);
ALTER TABLE ONLY public.compacted_chunks
    ADD CONSTRAINT compacted_chunks_message_id_fkey FOREIGN KEY (message_id) REFERENCES public.messages(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.discarded_edges
    ADD CONSTRAINT discarded_edges_tenant_entry_fkey FOREIGN KEY (tenant, entry) REFERENCES public.trash(tenant, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.discarded_entities
    ADD CONSTRAINT discarded_entities_tenant_entry_fkey FOREIGN KEY (tenant, entry) REFERENCES public.trash(tenant, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.discarded_evidence
    ADD CONSTRAINT discarded_evidence_tenant_entry_edge_id_fkey FOREIGN KEY (tenant, entry, edge_id) REFERENCES public.discarded_edges(tenant, entry, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.discarded_mentions
    ADD CONSTRAINT discarded_mentions_tenant_entry_fkey FOREIGN KEY (tenant, entry) REFERENCES public.trash(tenant, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.edge_evidence
    ADD CONSTRAINT edge_evidence_edge_id_fkey FOREIGN KEY (edge_id) REFERENCES public.edges(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.edge_replacements
    ADD CONSTRAINT edge_replacements_edge_id_fkey FOREIGN KEY (edge_id) REFERENCES public.edges(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.edge_replacements
    ADD CONSTRAINT edge_replacements_replaced_by_fkey FOREIGN KEY (replaced_by) REFERENCES public.edges(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.edges
    ADD CONSTRAINT edges_from_id_fkey FOREIGN KEY (from_id) REFERENCES public.entities(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.edges
    ADD CONSTRAINT edges_to_id_fkey FOREIGN KEY (to_id) REFERENCES public.entities(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.embedding_cache
    ADD CONSTRAINT embedding_cache_generation_fkey FOREIGN KEY (generation) REFERENCES public.embedding_generations(generation);
ALTER TABLE ONLY public.entities
    ADD CONSTRAINT entities_generation_fkey FOREIGN KEY (generation) REFERENCES public.embedding_generations(generation);
ALTER TABLE ONLY public.entity_embeddings
    ADD CONSTRAINT entity_embeddings_entity_id_fkey FOREIGN KEY (entity_id) REFERENCES public.entities(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.entity_embeddings
    ADD CONSTRAINT entity_embeddings_generation_fkey FOREIGN KEY (generation) REFERENCES public.embedding_generations(generation);
ALTER TABLE ONLY public.entity_names
    ADD CONSTRAINT entity_names_entity_id_fkey FOREIGN KEY (entity_id) REFERENCES public.entities(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.entity_witnesses
    ADD CONSTRAINT entity_witnesses_entity_id_fkey FOREIGN KEY (entity_id) REFERENCES public.entities(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.file_versions
    ADD CONSTRAINT file_versions_document_id_fkey FOREIGN KEY (document_id) REFERENCES public.documents(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.job_changes
    ADD CONSTRAINT job_changes_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.job_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.job_partitions
    ADD CONSTRAINT job_partitions_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.job_runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.message_chunks
    ADD CONSTRAINT message_chunks_generation_fkey FOREIGN KEY (generation) REFERENCES public.embedding_generations(generation);
ALTER TABLE ONLY public.message_chunks
    ADD CONSTRAINT message_chunks_message_id_fkey FOREIGN KEY (message_id) REFERENCES public.messages(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.note_chunks
    ADD CONSTRAINT note_chunks_generation_fkey FOREIGN KEY (generation) REFERENCES public.embedding_generations(generation);
ALTER TABLE ONLY public.note_chunks
    ADD CONSTRAINT note_chunks_note_id_fkey FOREIGN KEY (note_id) REFERENCES public.notes(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.note_sources
    ADD CONSTRAINT note_sources_note_id_fkey FOREIGN KEY (note_id) REFERENCES public.notes(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.note_sources
    ADD CONSTRAINT note_sources_source_id_fkey FOREIGN KEY (source_id) REFERENCES public.notes(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.note_versions
    ADD CONSTRAINT note_versions_note_id_fkey FOREIGN KEY (note_id) REFERENCES public.notes(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.passage_chunks
    ADD CONSTRAINT passage_chunks_generation_fkey FOREIGN KEY (generation) REFERENCES public.embedding_generations(generation);
ALTER TABLE ONLY public.passage_chunks
    ADD CONSTRAINT passage_chunks_passage_id_fkey FOREIGN KEY (passage_id) REFERENCES public.passages(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.passages
    ADD CONSTRAINT passages_document_id_fkey FOREIGN KEY (document_id) REFERENCES public.documents(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.procedure_embeddings
    ADD CONSTRAINT procedure_embeddings_generation_fkey FOREIGN KEY (generation) REFERENCES public.embedding_generations(generation);
ALTER TABLE ONLY public.procedure_embeddings
    ADD CONSTRAINT procedure_embeddings_procedure_id_fkey FOREIGN KEY (procedure_id) REFERENCES public.procedures(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.procedure_outcomes
    ADD CONSTRAINT procedure_outcomes_procedure_id_fkey FOREIGN KEY (procedure_id) REFERENCES public.procedures(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.procedure_witnesses
    ADD CONSTRAINT procedure_witnesses_procedure_id_fkey FOREIGN KEY (procedure_id) REFERENCES public.procedures(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.procedures
    ADD CONSTRAINT procedures_generation_fkey FOREIGN KEY (generation) REFERENCES public.embedding_generations(generation);
ALTER TABLE ONLY public.response_chains
    ADD CONSTRAINT response_chains_tenant_workspace_namespace_session_id_fkey FOREIGN KEY (tenant, workspace, namespace, session_id) REFERENCES public.sessions(tenant, workspace, namespace, session_id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE ONLY public.responses
    ADD CONSTRAINT responses_generation_fkey FOREIGN KEY (generation) REFERENCES public.embedding_generations(generation);
ALTER TABLE ONLY public.webhook_dead_letters
    ADD CONSTRAINT webhook_dead_letters_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;
