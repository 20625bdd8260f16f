"""Ray actors shared by every replica: the cache shards, their directory and the job scheduler."""
