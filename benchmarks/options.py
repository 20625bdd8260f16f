"""Options that every benchmark has."""

from typing import Annotated

import typer

UrlOption = Annotated[
    str | None, typer.Option("--url", help="A running Lamina; without it, one is started.", envvar="LAMINA_URL")
]
KeyOption = Annotated[str | None, typer.Option("--key", help="Its API key.", envvar="LAMINA_API_KEY")]
