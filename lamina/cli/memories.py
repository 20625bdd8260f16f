"""`lamina memories`: show, change and delete a memory of any kind by the id that a search returned."""

import json
from typing import Annotated, Any
from uuid import UUID

import typer

from lamina.cli.common import ConfigOption, DataDirOption, KeyOption, UrlOption, client_of
from lamina.cli.console import console
from lamina.errors import InvalidInput

app = typer.Typer(help="One memory of any kind, by its id: show, change, delete.", no_args_is_help=True)
IdArgument = Annotated[UUID, typer.Argument(help="Its id, as a search shows it.")]


@app.command("show")
def show(
    id: IdArgument,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Print a memory as JSON."""
    with client_of(config, data_dir, url, key) as client:
        _print_json(client.memory(id))


@app.command("change")
def change(
    id: IdArgument,
    fields: Annotated[
        list[str], typer.Option("--set", "-s", help="FIELD=VALUE of its kind, as JSON or as text; may be repeated.")
    ],
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Change fields of a memory, and print it as JSON."""
    changes = dict(_field(text) for text in fields)
    with client_of(config, data_dir, url, key) as client:
        _print_json(client.change_memory(id, **changes))


@app.command("delete")
def delete(
    id: IdArgument,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Delete a memory."""
    with client_of(config, data_dir, url, key) as client:
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
