"""Pure decisions of the caches: keys, bounds, times to live, and the order of eviction."""
