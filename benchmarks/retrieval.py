"""Retrieval quality over public data sets; one module a data set."""

import asyncio
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.table import Table

from benchmarks import locomo
from benchmarks.options import KeyOption, UrlOption
from benchmarks.report import publish
from benchmarks.service import Endpoint, service
from lamina.client import AsyncClient

Json = dict[str, Any]


def measure(
    locomo_dir: Annotated[Path, typer.Option("--locomo", help="Folder of the LoCoMo data set.")],
    conversations: Annotated[int | None, typer.Option(min=1, help="How many of the conversations.")] = None,
    limit_questions: Annotated[int | None, typer.Option(min=1, help="How many of the questions.")] = None,
    limit: Annotated[int, typer.Option(min=20, help="Fused hits asked for; the fused order depends on it.")] = 20,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 4,
    workspaces: Annotated[
        str | None, typer.Option(help="Prefix of the workspaces; the same again reuses them. Default: new ones.")
    ] = None,
    url: UrlOption = None,
    key: KeyOption = None,
    *,
    captions: Annotated[bool, typer.Option("--captions", help="Say what a shared image shows.")] = False,
) -> None:
    """Measure the recall of evidence, fused and per source."""
    options = locomo.Options(
        folder=locomo_dir,
        workspaces=workspaces or f"locomo-{uuid4().hex[:8]}",
        conversations=conversations,
        questions=limit_questions,
        captions=captions,
        limit=limit,
        concurrency=concurrency,
    )
    locomo.load(options)  # A wrong folder shows before a service is started.
    with service(url, key) as endpoint:
        shown, figures = asyncio.run(_run(endpoint, options))
    publish(shown, figures)


async def _run(endpoint: Endpoint, options: locomo.Options) -> tuple[tuple[Table, ...], Json]:
    async with AsyncClient(*endpoint) as client:
        found = locomo.figures(await locomo.run(client, options), options)
    return locomo.tables(found), {"locomo": found}
