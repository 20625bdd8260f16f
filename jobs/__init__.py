"""Batch maintenance over the cluster, as Ray jobs."""
