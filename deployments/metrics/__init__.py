"""`GET /metrics`: metrics that are read on request; the metrics that processes record leave through Ray."""
