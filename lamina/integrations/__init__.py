"""Memory for agent frameworks: one module a framework, over the client alone, each with the extra of its name."""
