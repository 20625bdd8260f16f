"""How much a client, a key or a tenant may take: pure decisions over counts and times."""
