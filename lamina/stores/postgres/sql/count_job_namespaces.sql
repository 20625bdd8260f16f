SELECT count(*) AS units FROM epochs
WHERE namespace <> ''
  AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
  AND (%(workspace)s::text IS NULL OR workspace = %(workspace)s)
  AND (%(namespace)s::text IS NULL OR namespace = %(namespace)s)
