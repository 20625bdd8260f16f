"""Run one job: `python -m jobs NAME`, also by `ray job submit -- python -m jobs NAME`.

It runs on the cluster that RAY_ADDRESS names, or on this machine's processors.
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.markup import escape

from actors import logs
from jobs.cluster import on_cluster
from lamina.aio.cancelling import cancel_all
from lamina.cli.common import ConfigOption, DataDirOption, guarded, server_of, settings_of
from lamina.cli.console import console
from lamina.cli.jobs import (
    ForceOption,
    JobArgument,
    RunProgress,
    ScopeOption,
    exit_code,
    job_named,
    print_runs,
)
from lamina.core.areas import Area
from lamina.core.memories import as_utc
from lamina.core.runs import JobName, Order, Run
from lamina.errors import InvalidInput
from lamina.maintenance import driver
from lamina.maintenance.report import report
from lamina.settings.loading import Settings
from lamina.stores.postgres.job_runs import JobRuns
from lamina.wiring.jobs import JOBS, settings_digest
from lamina.wiring.stores import build_pool, utc_now

app = typer.Typer(help="Maintenance jobs over the cluster.", no_args_is_help=True, pretty_exceptions_enable=False)
POLL_S = 0.5


@app.command()
def main(
    job: JobArgument,
    scope: ScopeOption = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    moment: Annotated[
        str | None, typer.Option("--moment", help="ISO time from which it decides; now if not given.")
    ] = None,
    undo: Annotated[UUID | None, typer.Option("--undo", help="Take this run of the job back.")] = None,
    show: Annotated[UUID | None, typer.Option("--show", help="Report what this run of the job did.")] = None,
    *,
    runs: Annotated[
        bool, typer.Option("--runs", help="List the job's latest runs, on everything and on parts.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what it would do.")] = False,
    force: ForceOption = False,
) -> None:
    """Run one job to its end, or go on with a run of the same that was interrupted.

    Exit 3 if it stopped at a scope that would have lost too much, 4 if something could not be done.
    """
    logging.basicConfig(level=logging.WARNING)
    # The report names a failure in one line; its traceback is shown only with LAMINA_DEBUG.
    logging.getLogger(driver.__name__).disabled = not os.environ.get("LAMINA_DEBUG")
    name = job_named(job)
    chosen = [option for option, value in (("undo", undo), ("show", show), ("runs", runs)) if value]
    if chosen:
        _refuse_beside(chosen, scope=scope, moment=moment, dry_run=dry_run, force=force)
    settings = settings_of(config, data_dir, postgres=server_of(config, data_dir))
    logs.install(settings.logs)
    if runs:
        print_runs([_row(run) for run in asyncio.run(_latest(settings, name))])
        return
    if undo is not None or show is not None:
        run = asyncio.run(_run_of(settings, name, undo or show))
    if show is None:
        with on_cluster(settings):
            from jobs import runner  # noqa: PLC0415 - Ray's flags must be set first

            area, at = Area.parse(scope or []), _moment(moment, dry_run)
            order = Order(name, area, at, dry_run, force, settings_digest=settings_digest(settings))
            run = asyncio.run(_run_to_end(settings, order) if undo is None else runner.undo(settings, undo))
    for line in report(run, JOBS[run.order.job].description):
        console.print(escape(line), highlight=False, soft_wrap=True)
    raise typer.Exit(exit_code(asdict(run)))


def _refuse_beside(chosen: Sequence[str], **others: object) -> None:
    """Refuse options that the chosen one would ignore.

    Raises:
        InvalidInput: Naming it.
    """
    for name in (*chosen[1:], *(name for name, value in others.items() if value)):
        raise InvalidInput(name, f"says nothing beside --{chosen[0]}; leave it out")


def _moment(text: str | None, is_dry_run: bool) -> datetime:
    """Parse the moment; only a dry run may decide from one in the future."""
    now = utc_now()
    try:
        at = now if text is None else as_utc(datetime.fromisoformat(text), "moment")
    except ValueError as error:
        raise InvalidInput("moment", f"is {text!r}; write it as 2026-11-28T09:00") from error
    if at > now + timedelta(minutes=1) and not is_dry_run:
        raise InvalidInput("moment", f"is {at.isoformat()}: what is not over yet would go; add --dry-run")
    return at


def _row(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.id),
        "job": run.order.job,
        "dry_run": run.order.is_dry_run,
        "area": str(run.order.area),
        "state": run.state,
        "created_at": run.created_at.isoformat(),
        "counts": asdict(run.counts),
    }


async def _latest(settings: Settings, name: JobName) -> list[Run]:
    async with build_pool(settings) as pool:
        return await JobRuns(pool).latest(name)


async def _run_of(settings: Settings, name: JobName, id_: UUID | None) -> Run:
    async with build_pool(settings) as pool:
        run = await JobRuns(pool).get(id_ or UUID(int=0))
    if run.order.job != name:
        raise InvalidInput("job", f"is {name}, but {run.id} is a run of {run.order.job}; name that")
    return run


async def _run_to_end(settings: Settings, order: Order) -> Run:
    from jobs.runner import start  # noqa: PLC0415 - Ray's flags must be set first

    begun: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
    work = asyncio.create_task(start(settings, order, begun.set_result))
    watching = asyncio.create_task(_show_progress(settings, begun))
    try:
        return await work
    finally:
        await cancel_all([watching])


async def _show_progress(settings: Settings, begun: "asyncio.Future[Run]") -> None:
    run = await begun
    async with build_pool(settings) as pool:
        with RunProgress(console, run.order.job) as progress:
            while True:
                now = await JobRuns(pool).get(run.id)
                progress.show(asdict(now.counts), now.plan.get("units", 0))
                await asyncio.sleep(POLL_S)


if __name__ == "__main__":
    guarded(app)
