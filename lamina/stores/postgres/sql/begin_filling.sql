UPDATE projection_stores SET filled_at = clock_timestamp() WHERE projection = %(projection)s
