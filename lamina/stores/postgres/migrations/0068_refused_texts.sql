-- Rows whose text the model of a generation refuses: a vector that says nothing stands in the place of theirs, so that
-- words still find them. The next run of `reembed` tries again.
CREATE TABLE refused_texts (
    generation smallint NOT NULL,
    id uuid NOT NULL,
    PRIMARY KEY (generation, id)
);
