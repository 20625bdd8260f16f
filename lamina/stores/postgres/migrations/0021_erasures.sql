-- Erasures of users, until they are proven and afterwards. The name of the user is there only while rows of that user may
-- be: a receipt holds a salted hash of it.
CREATE TABLE erasures (
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    user_id text,
    user_salt bytea NOT NULL,
    user_hash bytea NOT NULL,
    state text NOT NULL DEFAULT 'erasing' CHECK (state IN ('erasing', 'rewriting', 'complete')),
    requested_at timestamptz NOT NULL,
    emptied_at timestamptz,
    completed_at timestamptz,
    erased jsonb NOT NULL DEFAULT '{}',
    left_over jsonb NOT NULL DEFAULT '{}',
    audited jsonb NOT NULL DEFAULT '{}',
    waits_for jsonb NOT NULL DEFAULT '[]',
    receipt json
);
CREATE UNIQUE INDEX erasures_one_of_each ON erasures (tenant, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX erasures_open ON erasures (requested_at) WHERE state <> 'complete';
CREATE INDEX erasures_of_tenant ON erasures (tenant, requested_at);

-- The public keys that receipts were signed with.
CREATE TABLE receipt_keys (
    id text PRIMARY KEY,
    public_key bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Where projections were kept before: nobody erases anything there any more.
CREATE TABLE former_stores (
    projection text NOT NULL,
    store text NOT NULL,
    left_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (projection, store)
);

CREATE FUNCTION remember_former_store() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM former_stores WHERE projection = NEW.projection AND store = NEW.store;
    INSERT INTO former_stores (projection, store) VALUES (OLD.projection, OLD.store)
    ON CONFLICT (projection, store) DO UPDATE SET left_at = now();
    RETURN NULL;
END
$$;
CREATE TRIGGER projection_stores_former AFTER UPDATE OF store ON projection_stores
FOR EACH ROW WHEN (OLD.store IS NOT NULL AND OLD.store IS DISTINCT FROM NEW.store)
EXECUTE FUNCTION remember_former_store();

-- Keys of writes and the users that these were for are stored as hashes with a secret of this database.
CREATE TABLE hash_secret (secret bytea NOT NULL);
INSERT INTO hash_secret SELECT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());

CREATE FUNCTION keyed_hash(tenant text, value text) RETURNS text LANGUAGE sql STABLE STRICT
RETURN (
    SELECT 'h:' || encode(sha256(secret || sha256(secret || convert_to(json_build_array(tenant, value)::text, 'UTF8'))), 'hex')
    FROM hash_secret
);

-- A trigger: the release before writes the name itself.
ALTER TABLE idempotency_keys ADD COLUMN user_hash text;
UPDATE idempotency_keys SET user_hash = keyed_hash(tenant, user_id), user_id = NULL WHERE user_id IS NOT NULL;
CREATE FUNCTION hash_user_of_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.user_hash := keyed_hash(NEW.tenant, NEW.user_id);
    NEW.user_id := NULL;
    RETURN NEW;
END
$$;
CREATE TRIGGER idempotency_keys_hashed BEFORE INSERT ON idempotency_keys
FOR EACH ROW WHEN (NEW.user_id IS NOT NULL) EXECUTE FUNCTION hash_user_of_key();
DROP INDEX idempotency_keys_by_user;
CREATE INDEX idempotency_keys_by_user ON idempotency_keys (tenant, user_hash) WHERE user_hash IS NOT NULL;

-- Who wrote a procedure, as long as nobody else did; it goes with that user, and everybody may read it.
ALTER TABLE procedures ADD COLUMN user_id text;
CREATE INDEX procedures_by_user ON procedures (tenant, user_id) WHERE user_id IS NOT NULL;
