-- Votes on memories of any tier, one a principal and memory, with their counts; and the pins.
CREATE TABLE votes (
    tenant text NOT NULL,
    memory_id uuid NOT NULL,
    voter text NOT NULL,
    is_useful boolean NOT NULL,
    voted_at timestamptz NOT NULL,
    PRIMARY KEY (memory_id, voter)
);
CREATE TABLE feedback (
    memory_id uuid PRIMARY KEY,
    tenant text NOT NULL,
    useful integer NOT NULL DEFAULT 0,
    wrong integer NOT NULL DEFAULT 0,
    pinned_at timestamptz
);
CREATE INDEX feedback_pinned ON feedback (tenant, memory_id) WHERE pinned_at IS NOT NULL;
