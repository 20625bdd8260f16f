"""Pure: what caches keep, for how long, under which keys, and what they give up first."""
