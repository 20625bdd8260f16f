UPDATE projection_stores SET store = %(store)s WHERE projection = %(projection)s
