SELECT store FROM projection_stores WHERE projection = %(projection)s
