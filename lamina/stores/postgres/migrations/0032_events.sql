-- Changes of memories, written in the transaction of the change: ids and small facts, never contents.
CREATE TABLE events (
    seq bigserial NOT NULL,
    id uuid NOT NULL,
    tenant text NOT NULL,
    workspace text,
    namespace text,
    user_id text,
    agent_id text,
    session_id text,
    kind text NOT NULL,
    memory_ids uuid[] NOT NULL DEFAULT '{}',
    facts jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, seq)
);
CREATE INDEX events_by_id ON events (tenant, id);
CREATE INDEX events_by_time ON events USING brin (created_at);
-- Without a list of entries to be added later, which each look would read.
CREATE INDEX events_of_memories ON events USING gin (memory_ids) WITH (fastupdate = off);
CREATE INDEX events_of_user ON events (tenant, user_id) WHERE user_id IS NOT NULL;

-- Numbers of a sequence are committed out of their order. So each transaction holds, from before it takes its numbers
-- until its end, a lock that names a number below all of them; no lock of these waits for another.
CREATE FUNCTION mark_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(
        1702258034, (SELECT ((last_value - (NOT is_called)::int) & 2147483647)::int FROM events_seq_seq));
    RETURN NULL;
END
$$;
CREATE TRIGGER events_marked BEFORE INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION mark_events();

-- The number up to which every event is committed or never will be. The newest number is read before the locks: a
-- transaction that is not among them takes higher ones. Locks name the lower 31 bits of a number.
CREATE FUNCTION settled_events() RETURNS bigint LANGUAGE plpgsql AS $$
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
