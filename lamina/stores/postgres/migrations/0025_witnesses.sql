-- Who vouches for what is counted: a key, or an agent that its key is bound to. NULL means that nobody knows.
ALTER TABLE edge_evidence ADD COLUMN witness text;

-- Who mentioned an entity already.
CREATE TABLE entity_witnesses (
    entity_id uuid NOT NULL REFERENCES entities ON DELETE CASCADE,
    witness text NOT NULL,
    PRIMARY KEY (entity_id, witness)
);

-- What each witness reported of a procedure. What the procedure's own counts have beyond these was reported by nobody knows
-- whom.
CREATE TABLE procedure_witnesses (
    procedure_id uuid NOT NULL REFERENCES procedures ON DELETE CASCADE,
    witness text NOT NULL,
    successes bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (procedure_id, witness)
);
