"""`lamina caches`: show, clear and purge the caches of the running service."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lamina.cli.common import with_client
from lamina.cli.console import console
from lamina.client import Client

app = typer.Typer(help="The caches: show, clear, purge.", no_args_is_help=True)


@app.command("show")
@with_client()
def show_caches(client: Client) -> None:
    """Show each layer's entries, and its counts since the shards started."""
    stats = client.cache_stats()
    table = Table(box=None, padding=(0, 1, 0, 0))
    for column in ("layer", "hits", "stale", "misses", "errors", "rate", "ms", "entries", "MB", "evicted"):
        table.add_column(column, justify="left" if column == "layer" else "right", no_wrap=True)
    for name, layer in stats["layers"].items():
        table.add_row(name, *_layer_row(layer))
    console.print(table)
    for name, is_reached in stats["shards"].items():
        if not is_reached:
            console.print(f"[red]{escape(name)} does not answer[/]")


def _layer_row(layer: dict[str, Any]) -> Iterator[str]:
    yield from (str(layer[count]) for count in ("hits", "stale", "misses", "errors"))
    yield "-" if layer["hit_rate"] is None else f"{layer['hit_rate']:.1%}"
    yield "-" if layer["mean_ms"] is None else f"{layer['mean_ms']:.2f}"
    yield from ("-", "-") if layer["entries"] is None else (str(layer["entries"]), f"{layer['bytes'] / 1e6:.1f}")
    yield str(layer["evictions"])


@app.command("clear")
@with_client()
def clear_caches(
    client: Client,
    workspace: Annotated[str | None, typer.Option("--workspace", "-w", help="Whose caches.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent's responses there.")] = None,
    everything: Annotated[bool, typer.Option("--everything", help="The whole tenant's caches.")] = False,
) -> None:
    """Clear the caches of an agent, a workspace or the tenant, on every replica."""
    cleared = client.clear_caches(workspace, agent, everything=everything)["cleared"]
    console.print(", ".join(f"{name} {count}" for name, count in cleared.items()))


@app.command("purge")
@with_client()
def purge_caches(client: Client) -> None:
    """Remove expired rows from the caches' tables."""
    purged = client.purge_expired_caches()
    console.print(", ".join(f"{name} {count}" for name, count in purged.items()))
