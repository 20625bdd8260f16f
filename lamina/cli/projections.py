"""`lamina reindex` and `lamina audit`: rebuild projections, move them, compare them with Postgres."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from lamina.cli.common import LONG_TIMEOUT_S, ConfigOption, DataDirOption, progress, server_of, settings_of, with_client
from lamina.cli.console import console, errors
from lamina.client import Client
from lamina.core.ports import Identified
from lamina.core.tiers import PROJECTIONS, ProjectionName
from lamina.errors import LaminaError, Misconfigured
from lamina.projections.filling import FillReport, fill
from lamina.projections.locations import location_of
from lamina.projections.ownership import adopt_store, is_kept_here, refuse_stray_index, settle_installation
from lamina.settings.loading import Settings, kept_projections, store_settings
from lamina.settings.stores import QdrantEdgeSettings
from lamina.stores.postgres.builds import list_tenants, order_build, served_store
from lamina.stores.postgres.generations import Generation, active_generation
from lamina.stores.postgres.outbox import Outbox
from lamina.wiring.stores import build_pool, postgres_url

ALL = "all"


def reindex(
    projection: Annotated[str, typer.Argument(help=f"{', '.join(PROJECTIONS)}, or all.")],
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
    """Rebuild a projection; return an error instead of raising it, so that it does not hold up the others."""
    try:
        generation = asyncio.run(_active_generation(settings))
        if is_kept_here(settings, postgres_url(settings), name, generation):
            number, count = order_build(postgres_url(settings), name)
            console.print(f"{name}: build {number} takes over {count} memories; the running service applies them")
        else:
            _refuse_defaults(settings, name, is_named=is_named)
            _fill(settings, name, generation)
    except LaminaError as error:
        return error
    return None


def _refuse_defaults(settings: Settings, name: ProjectionName, *, is_named: bool) -> None:
    """Refuse to fill the defaults' embedded index: a call without a configuration means the service's own."""
    if not is_named and isinstance(store_settings(settings, name), QdrantEdgeSettings):
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


async def _active_generation(settings: Settings) -> Generation | None:
    async with build_pool(settings) as pool:
        return await active_generation(pool)


def _fill(settings: Settings, name: ProjectionName, generation: Generation | None) -> None:
    if generation is None:
        raise Misconfigured("the database has no memory yet", "start the service with this configuration instead")
    refuse_stray_index(settings, postgres_url(settings), name, generation)
    with progress(name, 0) as advance:
        filled = asyncio.run(fill_store(settings, name, generation, advance))
    console.print(
        f"{name}: {location_of(settings, name, generation)} has taken over {filled.memories} memories; "
        f"{filled.removed} unknown ones removed, {filled.differing} changed meanwhile; "
        "start the service with this configuration now",
        highlight=False,
        soft_wrap=True,
    )


def adopt(
    projection: Annotated[str, typer.Argument(help=f"{', '.join(PROJECTIONS)}, or all.")] = ALL,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Take over the stores of an installation that is gone, as after a restore into a new database.

    What they hold of it is told apart by `lamina audit`, which removes it with `--repair`.
    """
    from lamina.wiring.projections import build_projection  # noqa: PLC0415 - imports the engines of the indexes

    settings = settings_of(config, data_dir).model_copy(update={"postgres": server_of(config, data_dir)})
    generation = asyncio.run(_active_generation(settings))
    if generation is None:
        raise Misconfigured("the database has no memory yet", "start the service with this configuration instead")
    for name in _choose(projection, settings):
        built = build_projection(settings, name, generation)
        former = adopt_store(postgres_url(settings), built.connect)
        built.close()
        console.print(f"{name}: adopted; it belonged to {former or 'nobody that it tells'}", highlight=False)


async def fill_store(
    settings: Settings, name: ProjectionName, generation: Generation, report_page: Callable[[int], None]
) -> FillReport:
    """Have the store of the settings take over every memory, and compare it with Postgres."""
    from lamina.wiring.projections import build_projection  # noqa: PLC0415 - imports the engines of the indexes

    async with build_pool(settings) as pool:
        url = postgres_url(settings)
        built = build_projection(settings, name, generation)
        try:
            store = built.store if isinstance(built.store, Identified) else built.connect()
            await settle_installation(settings, url, name, generation, store, is_new=built.is_new)
            return await fill(Outbox(pool), name, built.store, list_tenants(url), report_page)
        finally:
            built.close()
            await built.aclose()


@with_client(timeout_s=LONG_TIMEOUT_S)
def audit(
    client: Client,
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Have what differs taken over again.")] = False,
) -> None:
    """Compare every projection with Postgres, for the key's tenant. Needs an admin key.

    Exit 1 if one differs, 2 if one could not be compared.
    """
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
