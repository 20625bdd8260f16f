"""`lamina jobs`: order maintenance from the running service, watch it, take it back."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from lamina.cli.common import with_client
from lamina.cli.console import console
from lamina.client import Client
from lamina.core.areas import ids_of
from lamina.core.runs import JOB_NAMES, OPEN, JobName
from lamina.errors import Misconfigured

STOPPED_CODE = 3
PROBLEM_CODE = 4
POLL_S = 0.5

app = typer.Typer(help="Maintenance: run, list, show, undo, schedule.", no_args_is_help=True)

JobArgument = Annotated[str, typer.Argument(help=f"{', '.join(JOB_NAMES)}.", metavar="JOB")]
ScopeOption = Annotated[
    list[str] | None,
    typer.Option("--scope", help="tenant=ID, workspace=ID or namespace=ID; may be repeated. Everything if not given."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Remove more of a scope than `jobs.most_removed`.")]


def job_named(name: str) -> JobName:
    """Return the job of this name.

    Raises:
        Misconfigured: If there is none.
    """
    for job in JOB_NAMES:
        if job == name:
            return job
    raise Misconfigured(f"there is no job {name}", f"choose one of {', '.join(JOB_NAMES)}")


class RunProgress:
    """The progress of a run: a bar in a terminal, a line a change elsewhere.

    Args:
        to: Where it is shown.
        title: What runs.
    """

    def __init__(self, to: Console, title: str) -> None:
        self._to = to
        self._title = title
        self._last = ""
        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn()
        self._bar = Progress(*columns, console=to, transient=True, disable=not to.is_terminal)
        self._task = self._bar.add_task(title, total=None, state="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, counts: Mapping[str, int], units: int) -> None:
        """Show how many units are finished, and how many rows were seen and changed."""
        state = f"{counts['units']} of {units} units, {counts['seen']} rows seen, {counts['changed']} changed"
        self._bar.update(self._task, total=max(1, units), completed=counts["units"], state=state)
        if not self._to.is_terminal and state != self._last:
            self._to.print(f"{self._title}: {state}", highlight=False, soft_wrap=True)
        self._last = state


@app.command("run")
@with_client()
def run_job(
    client: Client,
    job: JobArgument,
    scope: ScopeOption = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what it would do.")] = False,
    force: ForceOption = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Watch it until it has ended.")] = True,
) -> None:
    """Have the running service do a job on the key's tenant, or a part of it. Needs an admin key.

    `python -m jobs JOB` does it on all tenants, without the service. Exit 3 if it stopped at a scope that would have
    lost too much, 4 if something could not be done.
    """
    ids = ids_of(scope or [])  # The tenant above a workspace is the key's.
    run = client.run_job(job_named(job), dry_run=dry_run, force=force, **ids)
    run = _watch(client, run) if wait else run
    _print_run(run)
    raise typer.Exit(exit_code(run))


def exit_code(run: Mapping[str, Any]) -> int:
    """Return the exit code that tells a script how a run ended."""
    if run["state"] == "failed":
        return 1
    if run["state"] == "undone":
        return 0
    if run["held"]:
        return STOPPED_CODE
    return PROBLEM_CODE if run["problems"] else 0


def _watch(client: Client, run: dict[str, Any]) -> dict[str, Any]:
    with RunProgress(console, run["job"]) as progress:
        while run["state"] in OPEN:
            progress.show(run["counts"], run["plan"].get("units", 0))
            time.sleep(POLL_S)
            run = client.job_run(run["id"])
    return run


def _print_run(run: Mapping[str, Any]) -> None:
    for line in run["report"]:
        console.print(escape(line), highlight=False, soft_wrap=True)


@app.command("list")
@with_client()
def list_runs(
    client: Client,
    job: Annotated[str | None, typer.Argument(help="Only this job's runs.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Most runs.")] = 20,
) -> None:
    """List the latest runs of the key's tenant. Needs an admin key."""
    runs = client.job_runs(None if job is None else job_named(job), limit=limit)["runs"]
    print_runs(runs)


def print_runs(runs: Sequence[Mapping[str, Any]]) -> None:
    """Print runs as a table, the ids whole."""
    ids = Column("id", no_wrap=True, min_width=36)
    table = Table(ids, "job", "state", "began", "on", Column("changed", justify="right"), box=None)
    for run in runs:
        kind = f"{run['job']} (dry)" if run["dry_run"] else run["job"]
        began = f"{run['created_at'][5:10]} {run['created_at'][11:16]}"
        table.add_row(run["id"], kind, run["state"], began, escape(run["area"]), str(run["counts"]["changed"]))
    console.print(table)


@app.command("show")
@with_client()
def show_run(client: Client, id: Annotated[UUID, typer.Argument(help="Id of the run.")]) -> None:
    """Report on a run: its progress, or its result. Needs an admin key."""
    _print_run(client.job_run(str(id)))


@app.command("undo")
@with_client()
def undo_run(client: Client, id: Annotated[UUID, typer.Argument(help="Id of the run.")]) -> None:
    """Give every row that nobody changed since the run its values of before. Needs an admin key."""
    run = _watch(client, client.undo_job(str(id)))
    _print_run(run)
    raise typer.Exit(exit_code(run))


@app.command("schedule")
@with_client()
def show_schedule(client: Client) -> None:
    """Show when each job runs by itself, in UTC. Needs an admin key."""
    jobs = client.job_schedule()["jobs"]
    table = Table("job", Column("schedule", no_wrap=True), "next", "last", "what it does", box=None)
    for job in jobs:
        table.add_row(job["job"], job["schedule"], _minute(job["next_at"]), _minute(job["last_at"]), job["told"])
    console.print(table)


def _minute(moment: str | None) -> str:
    return "-" if moment is None else datetime.fromisoformat(moment).strftime("%m-%d %H:%M")
