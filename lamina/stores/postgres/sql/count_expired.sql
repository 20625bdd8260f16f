-- Rows of the caches' tables that are over.
SELECT (SELECT count(*) FROM responses WHERE tenant = %(tenant)s AND expires_at <= %(responses)s)
     + (SELECT count(*) FROM embedding_cache WHERE tenant = %(tenant)s AND last_used_at <= %(embeddings)s)
     + (SELECT count(*) FROM provider_cache_metrics WHERE tenant = %(tenant)s AND recorded_at <= %(providers)s)
       AS expired
