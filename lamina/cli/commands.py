"""The command line: run Lamina, use it, look after it."""

import importlib
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.logging import RichHandler
from rich.markup import escape
from rich.table import Table

from lamina import __version__
from lamina.cli import (
    caches,
    config,
    connect,
    folders,
    jobs,
    keys,
    mcp,
    memories,
    projections,
    quotas,
    receipts,
    sample,
)
from lamina.cli.common import (
    LONG_TIMEOUT_S,
    ConfigOption,
    DataDirOption,
    LimitOption,
    UrlOption,
    application_folder,
    client_of,
    fail,
    guarded,
    progress,
    settings_of,
    with_client,
)
from lamina.cli.console import console, errors
from lamina.cli.local import LocalService
from lamina.client import Client
from lamina.client.files import document_of_file, files_of, upload_batches
from lamina.errors import LaminaError, Misconfigured

app = typer.Typer(
    name="lamina", help="Tiered memory for swarms of agents.", no_args_is_help=True, pretty_exceptions_enable=False
)
app.add_typer(memories.app, name="memories")
app.add_typer(keys.app, name="keys")
app.add_typer(quotas.app, name="quotas")
app.add_typer(caches.app, name="caches")
app.add_typer(jobs.app, name="jobs")
app.add_typer(config.app, name="config")
app.add_typer(receipts.app, name="receipts")


def main() -> None:
    """Run `lamina`."""
    guarded(app)


class StartTimes(Protocol):
    """Times of the start of an application, in seconds."""

    @property
    def ray_s(self) -> float:
        """Of Ray itself: its processes and Serve, without the application."""

    @property
    def first_answer_s(self) -> float:
        """To the first answer, by words if the model was not loaded yet."""

    @property
    def whole_answer_s(self) -> float:
        """To the first answer of every part."""


@app.command()
def up(
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port of the HTTP endpoint; 0 takes a free one.")
    ] = None,
    *,
    with_sample: Annotated[bool, typer.Option("--sample", help="Load the sample conversation and search it.")] = False,
) -> None:
    """Start everything on this machine and serve until Ctrl-C."""
    logging.basicConfig(level=logging.WARNING, handlers=[RichHandler(console=errors, show_path=False)])
    settings = settings_of(config, data_dir)
    if port is not None:
        settings = settings.model_copy(update={"serve": settings.serve.model_copy(update={"port": port})})
    run = _application(settings.serve.application)
    begin = time.monotonic()

    def report(line: str) -> None:
        console.print(f"[dim]{time.monotonic() - begin:5.1f} s[/]  {escape(line)}", highlight=False)

    def on_ready(service: LocalService, times: StartTimes) -> None:
        first, whole, ray = times.first_answer_s, times.whole_answer_s, times.ray_s
        console.print(f"[bold green]Lamina {__version__}[/] answers at [bold]{service.url}[/] after {first:.1f} s")
        console.print(f"  whole after {whole:.1f} s; Ray itself took {ray:.1f} s of it", style="dim", highlight=False)
        console.print(f"  key   {service.key}", highlight=False, soft_wrap=True)
        console.print(f"  docs  {service.url}/docs", highlight=False)
        _warn_of_unchecked_model(service.url, service.key)
        if with_sample:
            _show_sample(service.url, service.key, report)
        console.print("serving; Ctrl-C stops", style="dim")

    run(settings, report, on_ready)


def _application(path: str) -> Callable[..., None]:
    module, _, name = path.partition(":")
    sys.path[:0] = [str(Path.cwd()), str(application_folder())]
    try:
        found: Callable[..., None] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise Misconfigured(
            f"{path} cannot be imported: {error}",
            "install lamina-memory[all]",
        ) from error
    return found


def _warn_of_unchecked_model(url: str, key: str) -> None:
    try:
        with Client(url, key) as client:
            model = client.status()["model"]
    except LaminaError:
        return  # The embedder does not answer yet; its log says the same.
    if model["checked"] == "unchecked":
        console.print(
            f"[yellow]unchecked[/] the vectors of {escape(model['model'])} on ONNX Runtime were compared with nothing; "
            "install lamina-memory[gpu] once to have torch check them"
        )


def _show_sample(url: str, key: str, report: Callable[[str], None]) -> None:
    conversation = sample.load()
    scope = {"workspace": conversation.workspace, "user": conversation.user, "agent": conversation.agent}
    with Client(url, key, scope=scope) as client:
        with progress("sample conversation", conversation.count) as advance:
            for session, messages in conversation.turns():
                client.record(messages, session=session)
                advance(len(messages))
        report(f"{conversation.count} messages of the sample conversation are stored")
        question = conversation.questions[0].query
        _print_answer(question, client.search(question, limit=5, explain=True))
        _print_context(client.context(question))


@app.command()
@with_client(is_scoped=True)
def add(
    client: Client,
    content: Annotated[str, typer.Argument(help="The text, or - for one note a line from standard input.")],
    category: Annotated[
        str,
        typer.Option(
            "--category", "-c", help="decision, outcome, strategy, note, interaction, fact, preference, skill, insight."
        ),
    ] = "note",
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", help="Label; may be repeated.")] = None,
) -> None:
    """Store a note."""
    lines = [line.strip() for line in sys.stdin if line.strip()] if content == "-" else [content]
    with progress("notes", len(lines)) as advance:
        for line in lines:
            stored = client.add(line, category=category, tags=tag or [])
            console.print(f"{stored['id']}  {'existed' if stored['existed'] else 'stored'}", highlight=False)
            advance(1)


@app.command()
@with_client(is_scoped=True, timeout_s=LONG_TIMEOUT_S)
def upload(
    client: Client,
    files: Annotated[
        list[Path], typer.Argument(help="Text, Markdown, HTML or PDF; a folder stands for all of these in it.")
    ],
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", help="Label; may be repeated.")] = None,
) -> None:
    """Store files as documents; a file of the same path replaces the one before. Exit 1 if one is refused."""
    found = files_of(files)
    refused = 0
    with progress("documents", len(found)) as advance:
        for batch in upload_batches(found):
            documents = [document_of_file(path) | {"tags": tag or []} for path in batch]
            for path, result in zip(batch, client.add_documents(documents)["results"], strict=True):
                refused += result["status"] == "invalid"
                _print_uploaded(path, result)
            advance(len(batch))
    if refused:
        fail(f"{refused} of {len(found)} files are refused")


def _print_uploaded(path: Path, result: dict[str, Any]) -> None:
    if result["status"] == "invalid":
        console.print(f"[red]refused[/]  {escape(str(path))}: {escape(result['error'])}", highlight=False)
    else:
        line = f"{result['id']}  {result['status']:8}  {result['passages']:4} passages  {escape(str(path))}"
        console.print(line, highlight=False, soft_wrap=True)


@app.command()
@with_client(is_scoped=True)
def search(
    client: Client,
    query: Annotated[str, typer.Argument(help="A question, or words.")],
    limit: LimitOption = 10,
) -> None:
    """Search all tiers, with each source's rank."""
    _print_answer(query, client.search(query, limit=limit, explain=True))


@app.command()
@with_client(is_scoped=True)
def context(
    client: Client,
    query: Annotated[str, typer.Argument(help="A question, or the latest message.")],
    budget_tokens: Annotated[int | None, typer.Option("--budget", help="Most estimated tokens.")] = None,
) -> None:
    """Print the block that a prompt would receive."""
    fields = {} if budget_tokens is None else {"budget_tokens": budget_tokens}
    _print_context(client.context(query, **fields))


@app.command()
def status(config: ConfigOption = None, data_dir: DataDirOption = None, url: UrlOption = None) -> None:
    """Show whether every part answers and how far the projections are behind; exit 1 if not ready."""
    with client_of(config, data_dir, url, None, needs_key=False) as client:
        ready = client.ready()
    table = Table("part", "state", box=None)
    for part, state in ready["parts"].items():
        table.add_row(part, f"[green]{state}[/]" if state == "ok" else f"[red]{escape(state)}[/]")
    for name, state in ready.get("stores", {}).items():
        table.add_row(f"{name} index", f"[green]{state}[/]" if state == "ok" else f"[yellow]{escape(state)}[/]")
    for name, lag in ready["outbox"].items():
        table.add_row(f"{name} outbox", f"{lag['pending']} pending, oldest {lag['oldest_s']:.1f} s")
    for name, build in ready["builds"].items():
        table.add_row(f"{name} build {build['number']}", f"{build['pending']} pending")
    console.print(table)
    raise typer.Exit(0 if ready["ready"] else 1)


app.command()(folders.watch_folder)
app.command()(projections.reindex)
app.command()(projections.audit)
app.command()(projections.adopt)
app.command("mcp")(mcp.serve)
app.command("connect")(connect.connect)


def _print_answer(query: str, answer: dict[str, Any]) -> None:
    table = Table("score", "tier", "when", "memory", "rank by source", title=escape(query), title_justify="left")
    for result in answer["results"]:
        ranks = ", ".join(f"{source} {place['rank']}" for source, place in (result["explain"] or {}).items())
        who = f"[bold]{escape(result['name'])}[/] " if result["name"] else ""
        when = result["occurred_at"][:10]
        table.add_row(f"{result['score']:.3f}", result["tier"], when, f"{who}{escape(result['content'])}", ranks)
    console.print(table)
    if answer["degraded"]:
        reasons = answer.get("reasons") or {}
        for part in answer["degraded"]:
            console.print(f"[yellow]degraded[/] {part}: {escape(reasons.get(part, ''))}")


def _print_context(block: dict[str, Any]) -> None:
    console.rule(f"context, {block['tokens']} of {block['budget_tokens']} tokens")
    console.print(block["text"], markup=False, highlight=False)
    console.rule()
