-- Where each projection is kept, and which build of it is under way: until the outbox holds nothing up to that row.
CREATE TABLE projection_stores (
    projection text PRIMARY KEY,
    store text,
    filled_at timestamptz,
    build integer NOT NULL DEFAULT 0,
    building_until bigint,
    ordered_at timestamptz
);
