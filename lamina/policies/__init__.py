"""Pure decisions: what ranks first, what is retained, what caches keep."""
