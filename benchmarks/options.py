"""Options that every benchmark has."""

from pathlib import Path
from typing import Annotated

import typer

UrlOption = Annotated[
    str | None, typer.Option("--url", help="A running Lamina; without it, one is started.", envvar="LAMINA_URL")
]
KeyOption = Annotated[str | None, typer.Option("--key", help="Its API key.", envvar="LAMINA_API_KEY")]

# Beside the repository; the sets have licences of their own and are no part of it.
DATA_SETS = Path(__file__).resolve().parents[2] / "shared" / "data"
