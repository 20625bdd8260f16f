"""Single runs of jobs in databases of their own, and their cost."""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.job_data import NoteBatch, drop_search_indexes, load, make_indexes, settle
from benchmarks.process_costs import times_of
from benchmarks.report import stage
from jobs.cluster import on_cluster
from lamina.core.areas import Area
from lamina.core.runs import JobName, Order, Run
from lamina.embedded import EmbeddedPostgres
from lamina.maintenance.driver import fan_out_over
from lamina.settings.loading import Settings, load_settings
from lamina.settings.models import HashingSettings
from lamina.settings.stores import PostgresServerSettings
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.migrate import migrate
from lamina.wiring.jobs import Tools, build_driver, build_job_embedder, build_worker
from lamina.wiring.stores import build_pool, model_identity

TENANT, WORKSPACE, NOBODY = "local", "year", "nobody"
WARM_UP_S = 0.5
CLOSING_S = 0.3
_COUNT = """
SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s
JOIN pg_database d ON d.oid = s.dbid AND d.datname = %s
"""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run.

    Args:
        seen: Rows it looked at.
        changed: Rows it changed.
        cpu_s: Of the workers and of Postgres together, which other processes do not lengthen.
        statements: That Postgres executed, those of transactions among them.
        peak_mb: Most memory of a worker.
    """

    seen: int
    changed: int
    elapsed_s: float
    cpu_s: float
    statements: int
    peak_mb: float

    @property
    def row_s(self) -> float:
        """Seconds a row; of no rows, those of the run."""
        return self.elapsed_s / max(1, self.seen)

    @property
    def row_cpu_s(self) -> float:
        """Seconds of CPU a row, at least one tick of the run's."""
        return max(0.01, self.cpu_s) / max(1, self.seen)

    def figures(self) -> Json:
        """Return the figures, in all and a row."""
        return {
            "seen": self.seen,
            "changed": self.changed,
            "seconds": self.elapsed_s,
            "cpu_seconds": self.cpu_s,
            "rows_per_s": 1 / self.row_s,
            "statements_per_1000_rows": 1000 * self.statements / max(1, self.seen),
            "peak_mb": self.peak_mb,
        }


@dataclass(frozen=True, slots=True)
class JobBench:
    """Where runs are measured.

    Args:
        folder: For what is no row.
        server: A Postgres that counts statements.
        scopes: Namespaces over which notes are spread.
        is_in_process: Whether workers are tasks of this process instead of Ray's.
    """

    folder: Path
    server: EmbeddedPostgres
    scopes: int
    is_in_process: bool = False

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """Yield the URL of a new database with the current schema, and drop it afterwards."""
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
            url = self.server.url.replace("/postgres?", f"/{name}?")
            migrate(url)
            yield url
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def costs(self, size: int, jobs: list[JobName], *, is_searched: bool = False) -> dict[JobName, Cost]:
        """Return the cost of each job, one after another on the same notes.

        Args:
            size: How many notes.
            jobs: In which order.
            is_searched: Whether the indexes of vectors and words are there.
        """
        name = f"notes_{size}"
        with self.database(name) as url:
            settings = self.settings(url, name)
            moment = self._fill(settings, url, size, is_searched=is_searched)
            with nullcontext() if self.is_in_process else fresh_cluster(settings):
                self._run(settings, Order(jobs[0], Area(NOBODY), moment))  # What a first run has to load.
                return {job: self._cost(settings, name, Order(job, Area(TENANT), moment)) for job in jobs}

    def settings(self, url: str, name: str) -> Settings:
        """Return the settings of runs in a database, whose files stand in a folder of this name."""
        settings = load_settings(
            data_dir=self.folder / name, postgres=PostgresServerSettings(url=url), embedding=HashingSettings()
        )
        # What else the machine does counts the same at each size.
        return settings.model_copy(update={"jobs": settings.jobs.model_copy(update={"nice": 0})})

    def _fill(self, settings: Settings, url: str, size: int, *, is_searched: bool) -> datetime:
        begin, batch = time.monotonic(), NoteBatch(TENANT, WORKSPACE, size, self.scopes, datetime.now(UTC))
        fill(settings, url, batch, is_searched=is_searched)
        without = "" if is_searched else ", without the indexes of vectors and words"
        stage(f"{size} notes written in {time.monotonic() - begin:.0f} s{without}")
        return batch.moment

    def _cost(self, settings: Settings, name: str, order: Order) -> Cost:
        forget_peaks(self._workers())
        statements, used, begin = self._statements(name), self._used(), time.perf_counter()
        run = self._run(settings, order)
        elapsed_s = time.perf_counter() - begin
        cost = Cost(
            run.counts.seen,
            run.counts.changed,
            elapsed_s,
            cpu_between(used, self._used()),
            self._statements(name) - statements,
            peak_mb(self._workers()),
        )
        stage(f"{order.job}: {cost.changed} of {cost.seen} rows changed in {elapsed_s:.1f} s{_describe_problems(run)}")
        return cost

    def _used(self) -> dict[int, float]:
        """Return the seconds each worker used so far, and Postgres for closed connections, as those of a run are."""
        time.sleep(CLOSING_S)
        server = self.server.pid or 0
        return {pid: times_of(pid).own_s for pid in self._workers()} | {server: times_of(server).ended_children_s}

    def _run(self, settings: Settings, order: Order) -> Run:
        return asyncio.run(_run_here(settings, order) if self.is_in_process else _run_on_ray(settings, order))

    def _workers(self) -> list[int]:
        return [os.getpid()] if self.is_in_process else ray_workers()

    def _statements(self, name: str) -> int:
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            row = connection.execute(_COUNT, [name]).fetchone()
        return int(row[0]) if row else 0


def fill(settings: Settings, url: str, batch: NoteBatch, *, is_searched: bool) -> None:
    """Write notes into a new database; the indexes of vectors and words come afterwards, or not at all."""
    claim_generation(url, model_identity(settings))
    indexes = drop_search_indexes(url)
    load(url, batch)
    if is_searched:
        make_indexes(url, indexes)
    settle(url)


def _describe_problems(run: Run) -> str:
    """Return the reason why a run does not represent the others."""
    held = f"; {len(run.held)} namespaces left alone" if run.held else ""
    return held + "".join(f"; {problem}" for problem in run.problems[:1])


async def _run_on_ray(settings: Settings, order: Order) -> Run:
    from jobs.runner import start  # noqa: PLC0415 - Ray's flags must be set first

    return await start(settings, order)


async def _run_here(settings: Settings, order: Order) -> Run:
    async with build_pool(settings) as pool:
        worker = build_worker(settings, pool, order.job, Tools(build_job_embedder(settings)))
        fan_out = fan_out_over(worker.work, settings.jobs.parallelism)
        return await build_driver(settings, pool, order.job, fan_out).start(order)


@contextmanager
def fresh_cluster(settings: Settings) -> Iterator[None]:
    """Start Ray with as many workers as a run uses at once, their modules loaded."""
    with on_cluster(settings):
        import ray  # noqa: PLC0415 - after its flags

        warm_up = ray.remote(num_cpus=settings.jobs.task_cpus)(_warm_up)
        ray.get([warm_up.remote() for _ in range(settings.jobs.parallelism)])
        yield


def _warm_up() -> None:
    import jobs.runner  # noqa: F401, PLC0415 - what a worker loads at its first partition

    time.sleep(WARM_UP_S)  # Until the others have begun, each in a process of its own.


def ray_workers() -> list[int]:
    """Return the ids of the processes in which Ray worked for this one."""
    parents = {int(path.parent.name): _field(path, "PPid") for path in Path("/proc").glob("[0-9]*/status")}
    rays = {pid for pid, parent in parents.items() if parent == os.getpid()}
    return [pid for pid, parent in parents.items() if parent in rays and _title(pid).startswith(b"ray::")]


def peak_mb(pids: list[int]) -> float:
    """Return the most memory that one of these processes ever had, in MB."""
    return max((_field(Path(f"/proc/{pid}/status"), "VmHWM") for pid in pids), default=0) * 1024 / 1e6


def cpu_between(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Return the seconds that processes used between; of those that have ended meanwhile none are known."""
    return sum(used - before.get(pid, 0.0) for pid, used in after.items())


def forget_peaks(pids: list[int]) -> None:
    """Reset the peak memory of these processes to their present memory."""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _field(status: Path, name: str) -> int:
    try:
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    except OSError:  # It has ended.
        return 0
    return int(lines.get(name, "0").split()[0])


def _title(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
