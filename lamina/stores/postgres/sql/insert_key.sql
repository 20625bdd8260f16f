INSERT INTO api_keys (id, tenant, role, label, hint, hash)
VALUES (%(id)s, %(tenant)s, %(role)s, %(label)s, %(hint)s, %(hash)s)
