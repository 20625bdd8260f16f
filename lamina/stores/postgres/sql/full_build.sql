SELECT build FROM projection_stores s
WHERE projection = %(projection)s AND building_until < %(unbounded)s
  AND NOT EXISTS (SELECT FROM outbox o WHERE o.projection = s.projection AND o.seq <= s.building_until)
