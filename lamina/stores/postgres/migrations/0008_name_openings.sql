-- The first word of every name: a long text asks for its words before it asks for their runs, which are eight times
-- as many.
CREATE INDEX entity_names_openings
    ON entity_names (tenant, workspace, namespace, sha256_of(split_part(key, ' ', 1)));
