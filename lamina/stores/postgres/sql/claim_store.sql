-- One statement sees what was there before it.
WITH before AS (SELECT store FROM projection_stores WHERE projection = %(projection)s),
claimed AS (
    INSERT INTO projection_stores (projection, store) VALUES (%(projection)s, %(store)s)
    ON CONFLICT (projection) DO UPDATE SET store = excluded.store
)
SELECT store IS NOT NULL AND store <> %(store)s AS is_another FROM before
