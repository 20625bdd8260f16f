INSERT INTO projection_stores (projection) VALUES (%(projection)s)
ON CONFLICT DO NOTHING
