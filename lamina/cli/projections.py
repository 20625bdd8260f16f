"""`lamina reindex` and `lamina audit`: build projections anew, move them, compare them with Postgres."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from lamina.cli.common import (
    ConfigOption,
    DataDirOption,
    KeyOption,
    UrlOption,
    client_of,
    console,
    errors,
    progress,
    server_of,
    settings_of,
)
from lamina.core.tiers import PROJECTIONS, ProjectionName
from lamina.errors import LaminaError, Misconfigured
from lamina.settings import QdrantEdgeSettings, Settings
from lamina.stores.postgres.builds import order_build, served_store
from lamina.wiring.indexes import chosen_for
from lamina.wiring.moving import fill_store, is_served
from lamina.wiring.stores import postgres_url
from lamina.wiring.tiers import kept_projections

ALL = "all"


def reindex(
    projection: Annotated[str, typer.Argument(help="messages, notes, cold, documents, graph, or all.")],
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Build a projection anew from Postgres.

    Where the running service keeps it, the service builds it beside the old one and switches; `lamina status` shows
    how far it is. With a configuration that keeps it elsewhere, that place is filled here and now: then start the
    service with that configuration.
    """
    settings = settings_of(config, data_dir).model_copy(update={"postgres": server_of(config, data_dir)})
    results = [_reindex(settings, name, is_named=config is not None) for name in _choose(projection, settings)]
    refused = [error for error in results if error is not None]
    for error in refused[:-1]:
        errors.print(f"[bold red]error[/] {escape(str(error))}", highlight=False, soft_wrap=True)
    if refused:
        raise refused[-1]


def _reindex(settings: Settings, name: ProjectionName, *, is_named: bool) -> LaminaError | None:
    """Build a projection anew; an error is returned, so that it does not hold up the others."""
    try:
        if asyncio.run(is_served(settings, name)):
            number, count = order_build(postgres_url(settings), name)
            console.print(f"{name}: build {number} takes over {count} memories; the running service applies them")
        else:
            _refuse_defaults(settings, name, is_named=is_named)
            _fill(settings, name)
    except LaminaError as error:
        return error
    return None


def _refuse_defaults(settings: Settings, name: ProjectionName, *, is_named: bool) -> None:
    """Refuse to fill the defaults' embedded index: a call without a configuration means the service's own."""
    if not is_named and isinstance(chosen_for(settings, name), QdrantEdgeSettings):
        raise Misconfigured(
            f"the service keeps {name} elsewhere: {served_store(postgres_url(settings), name)}",
            "name the service's --config, or the one to move to",
        )


def _choose(projection: str, settings: Settings) -> Sequence[ProjectionName]:
    available = kept_projections(settings)
    if projection == ALL:
        return available
    if projection not in PROJECTIONS:
        raise Misconfigured(f"there is no projection {projection}", f"choose one of {', '.join(PROJECTIONS)}, or all")
    if projection not in available:
        raise Misconfigured(f"this configuration keeps no {projection}", "choose a graph store instead of off")
    return [name for name in PROJECTIONS if name == projection]


def _fill(settings: Settings, name: ProjectionName) -> None:
    with progress(name, 0) as advance:
        filled = asyncio.run(fill_store(settings, name, advance))
    console.print(
        f"{name}: {filled.store} has taken over {filled.memories} memories; {filled.removed} unknown ones "
        f"removed, {filled.differing} changed meanwhile; start the service with this configuration now",
        highlight=False,
        soft_wrap=True,
    )


def audit(
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Have what differs taken over again.")] = False,
) -> None:
    """Compare every projection with Postgres, for the key's tenant. Needs an admin key.

    Exit 1 if one differs, 2 if one could not be compared.
    """
    with client_of(config, data_dir, url, key) as client:
        report = client.audit(repair=repair)
    columns = ("expected", "found", "missing", "surplus", "different", "pending", "repaired")
    table = Table("projection", *(Column(name, justify="right") for name in columns), box=None)
    for name, drift in report["projections"].items():
        table.add_row(name, *(str(drift[column]) for column in columns))
    console.print(table)
    for name, reason in report["failed"].items():
        console.print(f"[red]{name}: {escape(reason)}[/]")
    verdict, code = _verdict(report)
    console.print(verdict)
    raise typer.Exit(code)


def _verdict(report: Mapping[str, Any]) -> tuple[str, int]:
    """Return the result in words and its exit code; a projection that was not compared may have drifted."""
    drifted = any(
        drift[kind] for drift in report["projections"].values() for kind in ("missing", "surplus", "different")
    )
    if report["failed"]:
        known = "; there is drift in others" if drifted else ""
        return f"could not be compared: {', '.join(report['failed'])}{known}", 2
    return ("there is drift", 1) if drifted else ("every projection holds what Postgres says", 0)
