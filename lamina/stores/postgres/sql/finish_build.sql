UPDATE projection_stores SET building_until = NULL
WHERE projection = %(projection)s AND build = %(build)s
