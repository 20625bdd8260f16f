"""Pure decisions of ranking, retention and caching."""
