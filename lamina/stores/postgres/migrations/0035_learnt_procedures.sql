-- Procedures that runs of agents teach: proposed, then active or dropped. Those that somebody states are active.
ALTER TABLE procedures
    ADD COLUMN state text NOT NULL DEFAULT 'active' CHECK (state IN ('proposed', 'active', 'dropped')),
    ADD COLUMN is_learnt boolean NOT NULL DEFAULT false,
    ADD COLUMN is_private boolean NOT NULL DEFAULT false,
    ADD COLUMN is_decided boolean NOT NULL DEFAULT false;

-- What a run that ended with an outcome taught.
ALTER TABLE agent_turns
    ADD COLUMN learnt_at timestamptz,
    ADD COLUMN procedure_id uuid REFERENCES procedures ON DELETE SET NULL;
CREATE INDEX agent_turns_to_learn ON agent_turns (tenant, workspace, namespace, recorded_at, id)
    WHERE succeeded IS NOT NULL AND learnt_at IS NULL;
CREATE INDEX agent_turns_by_procedure ON agent_turns (procedure_id) WHERE procedure_id IS NOT NULL;
