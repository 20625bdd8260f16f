SELECT tenant, role FROM api_keys WHERE hash = %(hash)s AND revoked_at IS NULL
