SELECT build FROM projection_stores
WHERE projection = %(projection)s AND building_until IS NOT NULL
