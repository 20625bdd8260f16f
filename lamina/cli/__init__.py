"""The command line: run Lamina, use it, look after it."""

import sys

from lamina.errors import Misconfigured
from lamina.host.extras import needing


def main() -> None:
    """Run `lamina`; without its libraries, name the extra that brings them."""
    is_hook = sys.argv[1:2] == ["hook"]
    try:
        with needing("cli", "this is Lamina's client alone; the command line needs more"):
            if is_hook:
                from lamina.cli.hook import main as run  # noqa: PLC0415 - none of it comes with the client
            else:
                from lamina.cli.commands import main as run  # noqa: PLC0415
    except Misconfigured as error:
        sys.exit(0 if is_hook else f"error {error}")
    run()


__all__ = ["main"]
