"""Ray actors that all replicas share: the cache shards, their directory and the job scheduler."""
