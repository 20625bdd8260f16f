"""Runs of jobs in processes of their own, which kill themselves where a test says.

As a script it reads tasks from its input, a line of JSON each, and forks for each one: a process that has everything
imported is there in milliseconds, and its death leaves nothing behind but a broken connection.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.waiting import Wait

from lamina.core.areas import Area
from lamina.core.runs import JobName, Order, RunState
from lamina.errors import Conflict, Unavailable
from lamina.maintenance.driver import fan_out_over
from lamina.maintenance.job import Job
from lamina.maintenance.worker import Worker
from lamina.settings.loading import Settings
from lamina.stores.postgres.connection import PooledConnection
from lamina.stores.postgres.job_runs import JobRuns
from lamina.wiring.jobs import Tools, build_driver, build_job, build_job_embedder, build_undo, build_worker, job_limits
from lamina.wiring.stores import build_pool, utc_now
from tests.support.application import settings_for

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 90.0
PAGES = ("_page_rows", "_page_notes", "_slice_notes", "_page_sessions")
Place = Literal["before", "unanswered", "after"]
PLACES: tuple[Place, ...] = ("before", "unanswered", "after")


@dataclass(frozen=True)
class Death:
    """Where a process kills itself.

    Args:
        trip: At which of its round trips to Postgres, counted from 1.
        place: Before the request is sent, when it is sent and not answered, or after the answer.
    """

    trip: int
    place: Place


@dataclass(frozen=True)
class Task:
    """What a process does: drive a run of the job to its end, or work on one partition of a run.

    Args:
        url: The database.
        folder: Where files go.
        moment: ISO time.
        run: The run, for a worker.
        partition: Its partition, for a worker.
        page: Rows of a page, of whatever kind the job reads.
        settings: Other settings than those of tests.
    """

    url: str
    folder: str
    job: JobName
    moment: str
    run: str | None = None
    partition: int = 0
    page: int = 5
    partitions: int = 4
    settings: dict[str, Any] = field(default_factory=dict)
    death: Death | None = None


@dataclass(frozen=True)
class Outcome:
    """How a process ended: its exit code, negative for a signal, and its round trips, if it came to tell."""

    code: int
    trips: int = 0

    @property
    def is_killed(self) -> bool:
        return self.code == -signal.SIGKILL


class JobProcess:
    """The parent's side: has one task after another done."""

    def __init__(self, server: "subprocess.Popen[str]", log: Path) -> None:
        self._server = server
        self._log = log

    def run(self, task: Task) -> Outcome:
        """Return how the process of a task ended; that it failed by itself is an error."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(asdict(task)) + "\n")
        self._server.stdin.flush()
        outcome = Outcome(**json.loads(self._server.stdout.readline()))
        assert outcome.code == 0 or outcome.is_killed, self._log.read_text()[-5000:]
        return outcome


@contextmanager
def job_process() -> Iterator[JobProcess]:
    """Start the script, and end it."""
    command = [sys.executable, "-m", "tests.support.job_process"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with (
        tempfile.TemporaryDirectory(prefix="lamina-test-") as folder,
        (Path(folder) / "log").open("w") as log,
        subprocess.Popen(command, stderr=log, **pipes) as server,
    ):
        yield JobProcess(server, Path(folder) / "log")


def deaths(seed: int, count: int, most_trips: int) -> list[Death]:
    """Return where so many processes kill themselves, one after another."""
    chance = random.Random(seed)  # noqa: S311 - a test's
    return [Death(chance.randint(1, most_trips), chance.choice(PLACES)) for _ in range(count)]


def main() -> None:
    """Do the tasks of the input, each in a fork, one after another."""
    for line in sys.stdin:
        task = Task(**json.loads(line))
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _end(_in_fork(replace(task, death=task.death and Death(**task.death)), writing))  # type: ignore[arg-type]
        os.close(writing)
        with os.fdopen(reading) as told:
            trips = int(told.read() or 0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        sys.stdout.write(json.dumps(asdict(Outcome(code, trips))) + "\n")
        sys.stdout.flush()


def _in_fork(task: Task, told: int) -> int:
    trips = _Trips()
    _watch(trips, task.death)
    try:
        asyncio.run(asyncio.wait_for(_done(task, trips), DEADLINE_S))
    except BaseException:  # noqa: BLE001 - the log is where a test looks
        traceback.print_exc()
        return 1
    os.write(told, str(trips.count).encode())
    return 0


def _end(code: int) -> None:
    sys.stderr.flush()
    os._exit(code)


@dataclass
class _Trips:
    count: int = 0


def _watch(trips: _Trips, death: Death | None) -> None:
    """Count the round trips of this process, and kill it at the one of its death."""
    for kind in (AsyncConnection, PooledConnection):
        kind.wait = _watched(kind.wait, trips, death)  # type: ignore[method-assign]


def _watched(waited: Any, trips: _Trips, death: Death | None) -> Any:
    async def wait(self: Any, gen: Any, *arguments: Any, **options: Any) -> Any:
        trips.count += 1
        if death is None or trips.count != death.trip:
            return await waited(self, gen, *arguments, **options)
        if death.place != "before":
            await waited(self, _unanswered(gen) if death.place == "unanswered" else gen, *arguments, **options)
        return _die()

    return wait


def _unanswered(gen: "Generator[Any, Any, Any]") -> "Generator[Any, Any, Any]":
    """Pass a request on until its answer is waited for; what needs none ends here, too."""
    with suppress(StopIteration):
        wanted = next(gen)
        while wanted != Wait.R:
            wanted = gen.send((yield wanted))
    _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# The runs that a scheduler of this process started, in their order.
LAUNCHED: list[UUID] = []


async def launch_here(settings: Settings, run: UUID) -> None:
    """Drive a run in this process: a launcher for a scheduler that is not on Ray."""
    LAUNCHED.append(run)
    async with build_pool(settings) as pool:
        found, tools = await JobRuns(pool).get(run), Tools(build_job_embedder(settings))
        if found.state is RunState.UNDOING:
            await build_undo(settings, pool, found.order.job, tools).undo(run, utc_now())
        else:
            worker = build_worker(settings, pool, found.order.job, tools)
            await build_driver(settings, pool, found.order.job, fan_out_over(worker.work, 2)).drive(run)


async def launch_nothing(settings: Settings, run: UUID) -> None:
    """Fail, as a cluster without room."""
    LAUNCHED.append(run)
    raise Unavailable("cluster", "it has no room")


async def launch_forever(settings: Settings, run: UUID) -> None:
    """Be there for ever."""
    LAUNCHED.append(run)
    await asyncio.Event().wait()


async def _done(task: Task, trips: _Trips) -> None:
    chosen = dict(task.settings)
    jobs = {"page_rows": task.page, "partitions": task.partitions, **chosen.pop("jobs", {})}
    settings = settings_for(task.url, Path(task.folder), jobs=jobs, **chosen)
    async with build_pool(settings) as pool:
        job = build_job(settings, pool, task.job, Tools(build_job_embedder(settings)))
        worker = Worker(pool, _in_pages(job, task.page), job_limits(settings, task.job))
        if task.run is not None:
            await worker.work(await JobRuns(pool).get(UUID(task.run)), task.partition)
        else:
            driver = build_driver(settings, pool, task.job, fan_out_over(worker.work, 2))
            await _driven(driver.start, Order(task.job, Area(), datetime.fromisoformat(task.moment)), trips)


def _in_pages(job: Job[Any], page: int) -> Job[Any]:
    for name in PAGES:
        if hasattr(job, name):
            setattr(job, name, page)
    return job


async def _driven(start: Callable[[Order], Any], order: Order, trips: _Trips) -> None:
    """Drive, as soon as the lock of the process that died before is free; waiting for it is no round trip."""
    while True:
        trips.count = 0
        try:
            await start(order)
        except Conflict:
            await asyncio.sleep(0.01)
        else:
            return


if __name__ == "__main__":
    main()
