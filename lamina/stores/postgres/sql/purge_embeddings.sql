DELETE FROM embedding_cache WHERE tenant = %(tenant)s
