"""The command line: run Lamina, use it, look after it."""

import sys

from lamina.errors import Misconfigured
from lamina.extras import needing


def main() -> None:
    """Run `lamina`; without its libraries, name the extra that brings them."""
    try:
        with needing("cli", "this is Lamina's client alone; the command line needs more"):
            from lamina.cli.commands import main as run  # noqa: PLC0415 - none of it comes with the client
    except Misconfigured as error:
        sys.exit(f"error {error}")
    run()


__all__ = ["main"]
