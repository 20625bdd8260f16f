"""The command line: run Lamina, use it, look after it."""

from lamina.cli.commands import app, main

__all__ = ["app", "main"]
