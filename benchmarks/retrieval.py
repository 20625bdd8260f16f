"""Retrieval quality over public data sets; one module a data set."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.table import Table

from benchmarks import locomo, multihop, scifact
from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish
from benchmarks.service import Endpoint, service
from lamina.client import AsyncClient
from lamina.errors import Misconfigured

Json = dict[str, Any]
Measured = tuple[tuple[Table, ...], Json]
Measurement = Callable[[AsyncClient], Awaitable[Measured]]


def measure(
    locomo_dir: Annotated[Path | None, typer.Option("--locomo", help="Folder of the LoCoMo data set.")] = None,
    multihop_dir: Annotated[Path | None, typer.Option("--multihop", help="Folder of the 2Wiki data set.")] = None,
    scifact_dir: Annotated[Path | None, typer.Option("--scifact", help="Folder of the SciFact data set.")] = None,
    conversations: Annotated[int | None, typer.Option(min=1, help="How many of LoCoMo's conversations.")] = None,
    limit_questions: Annotated[
        int | None, typer.Option(min=1, help="How many of the questions of LoCoMo and claims of SciFact.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=20, help="Fused hits asked for over LoCoMo; the fused order depends on it.")
    ] = 20,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 4,
    workspaces: Annotated[
        str | None, typer.Option(help="Prefix of the workspaces; the same again reuses them. Default: new ones.")
    ] = None,
    url: UrlOption = None,
    key: KeyOption = None,
    *,
    captions: Annotated[bool, typer.Option("--captions", help="Say what a shared image of LoCoMo shows.")] = False,
) -> None:
    """Measure retrieval over any of the data sets, fused and per source."""
    run = uuid4().hex[:8]
    measurements: dict[str, Measurement] = {}
    if locomo_dir is not None:
        prefix = workspaces or f"locomo-{run}"
        of_locomo = locomo.Options(locomo_dir, prefix, conversations, limit_questions, captions, limit, concurrency)
        measurements["locomo"] = _locomo(of_locomo)
    if multihop_dir is not None:
        of_multihop = multihop.Options(multihop_dir, workspaces or f"multihop-{run}", concurrency=concurrency)
        measurements["multihop"] = _multihop(of_multihop)
    if scifact_dir is not None:
        of_scifact = scifact.Options(scifact_dir, workspaces or f"scifact-{run}", limit_questions, concurrency)
        measurements["scifact"] = _scifact(of_scifact)
    if not measurements:
        raise Misconfigured("no data set is named", "name one or more of --locomo, --multihop and --scifact")
    with service(url, key) as endpoint:
        publish(*asyncio.run(_run(endpoint, measurements)))


# Each reads its folder first: a wrong one shows before a service is started.


def _locomo(options: locomo.Options) -> Measurement:
    locomo.load(options)

    async def run(client: AsyncClient) -> Measured:
        found = locomo.figures(await locomo.run(client, options), options)
        return locomo.tables(found), found

    return run


def _multihop(options: multihop.Options) -> Measurement:
    multihop.load(options)

    async def run(client: AsyncClient) -> Measured:
        found = multihop.figures(await multihop.run(client, options), options)
        return multihop.tables(found), found

    return run


def _scifact(options: scifact.Options) -> Measurement:
    scifact.load(options)

    async def run(client: AsyncClient) -> Measured:
        found = scifact.figures(await scifact.run(client, options))
        return scifact.tables(found), found

    return run


async def _run(endpoint: Endpoint, measurements: dict[str, Measurement]) -> Measured:
    async with AsyncClient(*endpoint) as client:
        measured = {name: await run(client) for name, run in measurements.items()}
    shown = tuple(table for tables, _ in measured.values() for table in tables)
    return shown, {name: found for name, (_, found) in measured.items()}
