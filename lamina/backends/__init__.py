"""Servers that run as child processes of `lamina up`."""

from lamina.backends.falkordb import EmbeddedFalkorDB
from lamina.backends.postgres import EmbeddedPostgres, binaries, running_url

__all__ = ["EmbeddedFalkorDB", "EmbeddedPostgres", "binaries", "running_url"]
