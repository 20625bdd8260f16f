SELECT request_hash, response FROM idempotency_keys WHERE tenant = %(tenant)s AND key = %(key)s
