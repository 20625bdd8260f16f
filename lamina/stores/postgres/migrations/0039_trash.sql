-- What was deleted by a call and can be brought back. Notes and procedures stay in their tables, hidden; of messages and
-- documents the rows lie here.
CREATE TABLE trash (
    tenant text NOT NULL,
    id uuid NOT NULL,
    workspace text NOT NULL,
    namespace text NOT NULL,
    user_id text,
    agent_id text,
    kind text NOT NULL,
    content_hash bytea,
    rows json,
    deleted_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX trash_of_scope ON trash (tenant, workspace, namespace, deleted_at DESC);
CREATE INDEX trash_of_user ON trash (tenant, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX trash_of_text ON trash (tenant, workspace, namespace, kind, content_hash);

-- Inserts rows that were written as JSON by this release or an earlier one: a column that came later has its default.
CREATE FUNCTION revive_rows(relation regclass, rows json) RETURNS void LANGUAGE plpgsql AS $$
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
$$;
