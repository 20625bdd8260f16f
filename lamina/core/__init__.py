"""Values and ports: the words of the domain, without I/O."""
