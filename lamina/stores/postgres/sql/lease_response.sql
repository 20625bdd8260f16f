-- One caller is to refresh a stale response; if it does not in time, the next one is.
UPDATE responses SET lease_until = %(until)s
WHERE id = %(id)s AND tenant = %(tenant)s AND workspace = %(workspace)s
  AND (lease_until IS NULL OR lease_until <= %(now)s)
