UPDATE projection_stores SET building_until = (SELECT last_value FROM outbox_seq_seq)
WHERE projection = %(projection)s AND building_until IS NOT NULL
