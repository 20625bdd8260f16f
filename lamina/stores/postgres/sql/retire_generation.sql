UPDATE embedding_generations SET is_active = false, retired_at = clock_timestamp() WHERE is_active
