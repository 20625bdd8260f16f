-- The indexer takes changes in turns of the tenants, of every projection.
CREATE INDEX outbox_by_tenant ON outbox (projection, tenant, seq);
DROP INDEX outbox_of_cold;
