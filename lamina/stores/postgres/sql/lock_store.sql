SELECT store, filled_at > clock_timestamp() - %(apart)s::interval AS is_filled_lately,
       (SELECT count(DISTINCT memory_id) FROM outbox WHERE projection = %(projection)s) AS pending
FROM projection_stores
WHERE projection = %(projection)s
FOR UPDATE
