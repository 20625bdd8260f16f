"""Servers that run as child processes of `lamina up`."""

from lamina.embedded.falkordb import EmbeddedFalkorDB
from lamina.embedded.postgres import EmbeddedPostgres, binaries, running_url

__all__ = ["EmbeddedFalkorDB", "EmbeddedPostgres", "binaries", "running_url"]
