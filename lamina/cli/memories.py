"""`lamina memories`: show, change and delete a memory of any kind by the id that a search returned."""

import json
from typing import Annotated, Any
from uuid import UUID

import typer

from lamina.cli.common import with_client
from lamina.cli.console import console
from lamina.client import Client
from lamina.errors import InvalidInput

app = typer.Typer(help="One memory of any kind, by its id: show, change, delete.", no_args_is_help=True)
IdArgument = Annotated[UUID, typer.Argument(help="Its id, as a search shows it.")]


@app.command("show")
@with_client()
def show(client: Client, id: IdArgument) -> None:
    """Print a memory as JSON."""
    _print_json(client.memory(id))


@app.command("change")
@with_client()
def change(
    client: Client,
    id: IdArgument,
    fields: Annotated[
        list[str], typer.Option("--set", "-s", help="FIELD=VALUE of its kind, as JSON or as text; may be repeated.")
    ],
) -> None:
    """Change fields of a memory, and print it as JSON."""
    changes = dict(_field(text) for text in fields)
    _print_json(client.change_memory(id, **changes))


@app.command("delete")
@with_client()
def delete(client: Client, id: IdArgument) -> None:
    """Delete a memory."""
    client.delete_memory(id)
    console.print(f"{id}  deleted", highlight=False)


def _field(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidInput("--set", f"is {text}; write FIELD=VALUE")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _print_json(answer: Any) -> None:
    print(json.dumps(answer, indent=1))  # noqa: T201 - not wrapped, not coloured; escaped by JSON
