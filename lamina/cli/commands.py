"""The command line: run Lamina, use it, look after it."""

import asyncio
import importlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn
from uuid import UUID

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.table import Column, Table

from lamina import __version__, sample
from lamina.backends import running_url
from lamina.client import Client
from lamina.client.files import document_of_file, files_of, upload_batches
from lamina.errors import LaminaError, Misconfigured
from lamina.local import find_service
from lamina.settings import EmbeddedPostgresSettings, PostgresServerSettings, Settings, load_settings
from lamina.stores.postgres.connection import Pool, new_pool
from lamina.stores.postgres.keys import KeyRole, create_key, list_keys, revoke_key
from lamina.stores.postgres.outbox import PROJECTIONS, enqueue_all
from lamina.stores.postgres.temperatures import Sweep, Temperatures

app = typer.Typer(
    name="lamina", help="Tiered memory for swarms of agents.", no_args_is_help=True, pretty_exceptions_enable=False
)
keys = typer.Typer(help="API keys: create, list, revoke.", no_args_is_help=True)
app.add_typer(keys, name="keys")
caches = typer.Typer(help="The caches: show, clear, purge.", no_args_is_help=True)
app.add_typer(caches, name="caches")
console = Console()
errors = Console(stderr=True)

ConfigOption = Annotated[Path | None, typer.Option("--config", help="YAML file of settings.", envvar="LAMINA_CONFIG")]
DataDirOption = Annotated[Path | None, typer.Option("--data-dir", help="Directory of the embedded stores.")]
UrlOption = Annotated[str | None, typer.Option("--url", help="Where Lamina listens.", envvar="LAMINA_URL")]
KeyOption = Annotated[str | None, typer.Option("--key", help="API key.", envvar="LAMINA_API_KEY")]
WorkspaceOption = Annotated[str, typer.Option("--workspace", "-w", help="Project.")]
UserOption = Annotated[str | None, typer.Option("--user", "-u", help="Person.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", help="Most results.")]


def main() -> None:
    """Run the command line; an error of ours is one line, never a traceback."""
    try:
        app()
    except LaminaError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted", code=130)
    except Exception as error:
        if os.environ.get("LAMINA_DEBUG"):
            raise
        first = next(iter(str(error).strip().splitlines()), "")
        _fail(f"unexpected {type(error).__name__}: {first}; LAMINA_DEBUG=1 shows where")


def _fail(said: str, code: int = 1) -> NoReturn:
    errors.print(f"[bold red]error[/] {escape(said)}", highlight=False, soft_wrap=True)
    sys.exit(code)


def _settings(config: Path | None, data_dir: Path | None, **overrides: Any) -> Settings:
    chosen = {"data_dir": data_dir} if data_dir is not None else {}
    return load_settings(config, **chosen, **overrides)


def _client(
    config: Path | None, data_dir: Path | None, url: str | None, key: str | None, **scope: str | None
) -> Client:
    given = {name: value for name, value in scope.items() if value is not None}
    if url is None:
        service = find_service(_settings(config, data_dir).data_dir)
        if service is not None:
            return Client(service.url, key or service.key, scope=given)
        if data_dir is not None:
            raise Misconfigured(
                f"no Lamina runs on {data_dir}", "start it with `lamina up --data-dir`, or name its --url"
            )
    return Client(url, key, scope=given)


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
    settings = _settings(config, data_dir)
    if port is not None:
        settings = settings.model_copy(update={"serve": settings.serve.model_copy(update={"port": port})})
    run = _application(settings.serve.application)
    begin = time.monotonic()

    def report(line: str) -> None:
        console.print(f"[dim]{time.monotonic() - begin:5.1f} s[/]  {escape(line)}", highlight=False)

    def on_ready(started: Any) -> None:
        _greet(started.service.url, started.service.key, started.started_s)
        if with_sample:
            _show_sample(started.service.url, started.service.key, report)
        console.print("serving; Ctrl-C stops", style="dim")

    run(settings, report, on_ready)


def _application(path: str) -> Callable[..., None]:
    module, _, name = path.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Callable[..., None] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise Misconfigured(
            f"{path} cannot be imported: {error}",
            "run `lamina up` in a checkout of Lamina, with lamina[all] installed",
        ) from error
    return found


def _greet(url: str, key: str, started_s: float) -> None:
    console.print(f"[bold green]Lamina {__version__}[/] answers at [bold]{url}[/] after {started_s:.1f} s")
    console.print(f"  key   {key}", highlight=False, soft_wrap=True)
    console.print(f"  docs  {url}/docs", highlight=False)


def _show_sample(url: str, key: str, report: Callable[[str], None]) -> None:
    conversation = sample.load()
    scope = {"workspace": conversation.workspace, "user": conversation.user, "agent": conversation.agent}
    with Client(url, key, scope=scope) as client:
        with _progress("sample conversation", conversation.count) as advance:
            for session, messages in conversation.turns():
                client.record(messages, session=session)
                advance(len(messages))
        report(f"{conversation.count} messages of the sample conversation are stored")
        question = conversation.questions[0].query
        _print_answer(question, client.search(question, limit=5, explain=True))
        _print_context(client.context(question))


def _progress(title: str, total: int) -> "_Progress":
    return _Progress(title, total)


class _Progress:
    """A bar in a terminal, nothing elsewhere."""

    def __init__(self, title: str, total: int) -> None:
        from rich.progress import Progress  # noqa: PLC0415 - only long work needs it

        self._bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(title, total=total)

    def __enter__(self) -> Callable[[int], None]:
        self._bar.start()
        return lambda count: self._bar.advance(self._task, count)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


@app.command()
def add(
    content: Annotated[str, typer.Argument(help="The text, or - for one note a line from standard input.")],
    category: Annotated[
        str, typer.Option("--category", "-c", help="decision, outcome, strategy, note, interaction.")
    ] = "note",
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", help="Label; may be repeated.")] = None,
    workspace: WorkspaceOption = "default",
    user: UserOption = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Store a note."""
    lines = [line.strip() for line in sys.stdin if line.strip()] if content == "-" else [content]
    with (
        _client(config, data_dir, url, key, workspace=workspace, user=user) as client,
        _progress("notes", len(lines)) as advance,
    ):
        for line in lines:
            stored = client.add(line, category=category, tags=tag or [])
            console.print(f"{stored['id']}  {'existed' if stored['existed'] else 'stored'}", highlight=False)
            advance(1)


@app.command()
def upload(
    files: Annotated[
        list[Path], typer.Argument(help="Text, Markdown, HTML or PDF; a folder stands for all of these in it.")
    ],
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", help="Label; may be repeated.")] = None,
    workspace: WorkspaceOption = "default",
    user: UserOption = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Store files as documents; a file of the same path replaces the one before. Exit 1 if one is refused."""
    found = files_of(files)
    refused = 0
    with (
        _client(config, data_dir, url, key, workspace=workspace, user=user) as client,
        _progress("documents", len(found)) as advance,
    ):
        for batch in upload_batches(found):
            documents = [document_of_file(path) | {"tags": tag or []} for path in batch]
            for path, result in zip(batch, client.add_documents(documents)["results"], strict=True):
                refused += result["status"] == "invalid"
                _print_uploaded(path, result)
            advance(len(batch))
    if refused:
        _fail(f"{refused} of {len(found)} files are refused")


def _print_uploaded(path: Path, result: dict[str, Any]) -> None:
    if result["status"] == "invalid":
        console.print(f"[red]refused[/]  {escape(str(path))}: {escape(result['error'])}", highlight=False)
    else:
        said = f"{result['id']}  {result['status']:8}  {result['passages']:4} passages  {escape(str(path))}"
        console.print(said, highlight=False, soft_wrap=True)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="A question, or words.")],
    limit: LimitOption = 10,
    workspace: WorkspaceOption = "default",
    user: UserOption = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Search all tiers, with each source's rank."""
    with _client(config, data_dir, url, key, workspace=workspace, user=user) as client:
        _print_answer(query, client.search(query, limit=limit, explain=True))


@app.command()
def context(
    query: Annotated[str, typer.Argument(help="A question, or the latest message.")],
    budget_tokens: Annotated[int | None, typer.Option("--budget", help="Most estimated tokens.")] = None,
    workspace: WorkspaceOption = "default",
    user: UserOption = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Print the block that a prompt would receive."""
    with _client(config, data_dir, url, key, workspace=workspace, user=user) as client:
        fields = {} if budget_tokens is None else {"budget_tokens": budget_tokens}
        _print_context(client.context(query, **fields))


@app.command()
def status(config: ConfigOption = None, data_dir: DataDirOption = None, url: UrlOption = None) -> None:
    """Show whether every part answers and how far the projections are behind; exit 1 if not ready."""
    with _client(config, data_dir, url, None) as client:
        ready = client.ready()
    table = Table("part", "state", box=None)
    for part, state in ready["parts"].items():
        table.add_row(part, f"[green]{state}[/]" if state == "ok" else f"[red]{escape(state)}[/]")
    for name, lag in ready["outbox"].items():
        table.add_row(f"{name} outbox", f"{lag['pending']} pending, oldest {lag['oldest_s']:.1f} s")
    console.print(table)
    raise typer.Exit(0 if ready["ready"] else 1)


@app.command()
def reindex(
    projection: Annotated[str, typer.Argument(help="messages, notes, cold, documents or graph.")],
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Have a projection take over every memory from Postgres again; `lamina status` shows how far it is."""
    if projection not in PROJECTIONS:
        raise Misconfigured(f"there is no projection {projection}", f"choose one of {', '.join(PROJECTIONS)}")
    count = enqueue_all(_database(config, data_dir), projection)
    console.print(f"{count} memories are queued; the running service applies them")


@app.command()
def audit(
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Have what differs taken over again.")] = False,
) -> None:
    """Compare every projection with Postgres, for the key's tenant; exit 1 if one differs. Needs an admin key."""
    with _client(config, data_dir, url, key) as client:
        report = client.audit(repair=repair)
    columns = ("expected", "found", "missing", "surplus", "different", "pending", "repaired")
    table = Table("projection", *(Column(name, justify="right") for name in columns), box=None)
    for name, drift in report["projections"].items():
        table.add_row(name, *(str(drift[column]) for column in columns))
    console.print(table)
    for name, reason in report["failed"].items():
        console.print(f"[red]{name}: {escape(reason)}[/]")
    console.print("every projection holds what Postgres says" if report["consistent"] else "there is drift")
    raise typer.Exit(0 if report["consistent"] else 1)


@app.command()
def sweep(
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be demoted.")] = False,
) -> None:
    """Demote notes that nobody found for their lifespan to the cold index."""
    pool = new_pool(_database(config, data_dir), _settings(config, data_dir).pool)
    swept = asyncio.run(_swept(pool, dry_run=dry_run))
    if swept.namespaces:
        table = Table("tenant", "workspace", "namespace", "notes", box=None)
        for item in swept.namespaces:
            table.add_row(escape(item.tenant), escape(item.workspace), escape(item.namespace), str(item.notes))
        console.print(table)
    console.print(f"{swept.notes} notes {'would be' if dry_run else 'are'} demoted")


async def _swept(pool: Pool, *, dry_run: bool) -> Sweep:
    async with pool:
        return await Temperatures(pool).sweep(datetime.now(UTC), dry_run=dry_run)


@keys.command("create")
def create(
    tenant: Annotated[str, typer.Option("--tenant", help="Isolation boundary that the key opens.")],
    role: Annotated[KeyRole, typer.Option("--role", help="What the key may do.")] = KeyRole.WRITER,
    label: Annotated[str, typer.Option("--label", help="What the key is for.")] = "cli",
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Create a key and print it; it is stored hashed and cannot be shown again."""
    console.print(
        create_key(_database(config, data_dir), tenant=tenant, role=role, label=label), highlight=False, soft_wrap=True
    )


@keys.command("list")
def show_keys(config: ConfigOption = None, data_dir: DataDirOption = None) -> None:
    """List all keys, without their secrets."""
    id_column = Column("id", no_wrap=True, min_width=36)  # `lamina keys revoke` needs it whole
    table = Table(id_column, "tenant", "role", "label", "key", "created", "revoked", box=None)
    for key in list_keys(_database(config, data_dir)):
        revoked = key.revoked_at.isoformat(" ", "seconds") if key.revoked_at else "-"
        created = key.created_at.isoformat(" ", "seconds")
        table.add_row(str(key.id), escape(key.tenant), key.role, escape(key.label), f"{key.hint}…", created, revoked)
    console.print(table)


@keys.command("revoke")
def revoke(
    id: Annotated[UUID, typer.Argument(help="Id of the key, from `lamina keys list`.")],  # noqa: A002
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Make a key invalid."""
    revoke_key(_database(config, data_dir), id)
    console.print(f"{id} is revoked", highlight=False)


@caches.command("show")
def show_caches(
    config: ConfigOption = None, data_dir: DataDirOption = None, url: UrlOption = None, key: KeyOption = None
) -> None:
    """Show what each layer holds, and did since the shards began."""
    with _client(config, data_dir, url, key) as client:
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


@caches.command("clear")
def clear_caches(
    workspace: Annotated[str | None, typer.Option("--workspace", "-w", help="Whose caches.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent's responses there.")] = None,
    everything: Annotated[bool, typer.Option("--everything", help="The whole tenant's caches.")] = False,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
) -> None:
    """Clear the caches of an agent, a workspace or the tenant, on every replica."""
    with _client(config, data_dir, url, key) as client:
        cleared = client.clear_caches(workspace, agent, everything=everything)["cleared"]
    console.print(", ".join(f"{name} {count}" for name, count in cleared.items()))


@caches.command("purge")
def purge_caches(
    config: ConfigOption = None, data_dir: DataDirOption = None, url: UrlOption = None, key: KeyOption = None
) -> None:
    """Remove what has expired from the caches' tables."""
    with _client(config, data_dir, url, key) as client:
        purged = client.purge_expired_caches()
    console.print(", ".join(f"{name} {count}" for name, count in purged.items()))


def _database(config: Path | None, data_dir: Path | None) -> str:
    settings = _settings(config, data_dir)
    match settings.postgres:
        case PostgresServerSettings(url=url):
            return url
        case EmbeddedPostgresSettings():
            return running_url(settings.data_dir / "postgres")


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
