-- The earlier intervals of an edge that held, ended, and began again; the graph learns when edges ended.
ALTER TABLE edges ADD COLUMN held_before tstzmultirange NOT NULL DEFAULT '{}';
INSERT INTO outbox (projection, memory_id) SELECT DISTINCT 'graph', from_id FROM edges WHERE valid_to IS NOT NULL;
