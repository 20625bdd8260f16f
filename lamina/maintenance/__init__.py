"""Maintenance: jobs that look at a scope page by page, decide, and change Postgres; nothing here knows a cluster."""
