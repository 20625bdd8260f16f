"""Jobs over a real Ray, and the scheduler that starts them: whoever is killed, a run comes to its end."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from actors import scheduler as scheduling
from actors.scheduler import BY_SCHEDULE, MOST_DRIVEN, Scheduler, open_scheduler
from lamina.core.areas import Area
from lamina.core.runs import JOB_NAMES, JobName, Order, Run, RunState
from lamina.errors import Misconfigured
from lamina.maintenance.undo import request_undo
from lamina.stores.postgres.job_runs import JobRuns, job_lock
from lamina.wiring.jobs import jobs_namespace, settings_digest
from lamina.wiring.stores import build_pool
from tests.support.application import settings_for
from tests.support.forks import JOBS, Fork
from tests.support.job_process import LAUNCHED
from tests.support.on_ray import kill_actors, open_a_scheduler, open_three_schedulers, print_niceness
from tests.support.ray_head import RAY, RayHead, ray_head
from tests.support.service import ROOT, command_line, descendants, environment

TIMEOUT_S = 180.0
# The niceness of a worker: Ray's processes have 15, and jobs.nice adds 10.
LOWEST = 19
DAY = timedelta(days=1)
NEAR = (
    "the crane at the northern pier was inspected by the second crew as the tide came in and its bolts were open",
    "The crane at the northern pier was inspected by the second crew, as the tide came in and its bolts were open.",
    "somebody painted the boat house",
)


def idle(url: str, tenant: str, namespaces: int, notes: int = 4) -> int:
    """Write warm notes that nobody found for a year; return how many."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO epochs (tenant, workspace, namespace) SELECT %s, 'w', 'n' || n FROM generate_series(1, %s) n",
            [tenant, namespaces],
        )
        connection.execute(
            "INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance,"
            " confidence, source, event_at, last_hit_at)"
            " SELECT gen_random_uuid(), %s, 'w', 'n' || n, 'note', 'note ' || i, sha256_of('note ' || i), 0.5, 1,"
            " 'api', now(), now() - interval '1 year' FROM generate_series(1, %s) n, generate_series(1, %s) i",
            [tenant, namespaces, notes],
        )
    return namespaces * notes


def near_duplicates(url: str, tenant: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO epochs (tenant, workspace, namespace) VALUES (%s, 'w', 'n')", [tenant])
        for content in NEAR:
            connection.execute(
                "INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance,"
                " confidence, source, event_at) VALUES"
                " (gen_random_uuid(), %s, 'w', 'n', 'note', %s, sha256_of(%s::text), 0.5, 1, 'api', now())",
                [tenant, content, content],
            )


def cold(url: str, tenant: str = "acme") -> int:
    return one_of(url, "SELECT count(*) FROM notes WHERE temperature = 'cold' AND tenant = %s", tenant)


def one_of(url: str, statement: str, *values: Any) -> Any:
    with psycopg.connect(url) as connection:
        row = connection.execute(statement.encode(), values).fetchone()
    return row and row[0]


def until(check: Callable[[], Any], told: Callable[[], Any] = lambda: "") -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not check():
        assert time.monotonic() < deadline, told()
        time.sleep(0.05)


async def until_seen(check: Callable[[], Any]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not check():  # noqa: ASYNC110 - what is waited for stands in Postgres
            await asyncio.sleep(0.02)


# --- The scheduler in this process.


@dataclass
class Waiting:
    """A database whose scheduler is here, and the runs in it."""

    url: str
    runs: JobRuns
    folder: Path
    settings: dict[str, Any]

    @asynccontextmanager
    async def scheduler(self, launcher: str = "launch_here", **jobs: Any) -> AsyncIterator[Scheduler]:
        chosen = {"is_scheduled": False, "launcher": f"tests.support.job_process:{launcher}", **jobs}
        one = Scheduler(settings_for(self.url, self.folder, jobs=chosen))
        try:
            yield one
        finally:
            await one.close()

    async def add(self, job: JobName = "sweep", tenant: str | None = "acme", **order: Any) -> UUID:
        return await self.runs.add(Order(job, Area(tenant), order.pop("moment", datetime.now(UTC)), **order))

    def state(self, run: UUID) -> str:
        return str(one_of(self.url, "SELECT state FROM job_runs WHERE id = %s", run))

    async def has_ended(self, run: UUID, state: RunState = RunState.DONE) -> Run:
        await until_seen(lambda: self.state(run) == state)
        return await self.runs.get(run)


@pytest.fixture
async def waiting(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Waiting]:
    monkeypatch.setattr(scheduling, "LOOK_S", 0.1)
    monkeypatch.setattr(scheduling, "RETRY_S", 0.05)
    LAUNCHED.clear()
    async with build_pool(settings_for(database, tmp_path)) as pool:
        yield Waiting(database, JobRuns(pool), tmp_path, {})


async def test_what_was_queued_before_and_after_it_began_is_started_by_itself(waiting: Waiting) -> None:
    rows = idle(waiting.url, "acme", 3)
    before = await waiting.add("sweep")

    async with waiting.scheduler():
        swept = await waiting.has_ended(before)
        after = await waiting.add("decay")
        await waiting.has_ended(after)

    assert swept.counts.changed == rows == cold(waiting.url)
    assert [before, after] == LAUNCHED


async def test_a_queued_run_is_started_at_once_and_not_at_the_next_look(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "LOOK_S", 600.0)

    async with waiting.scheduler():
        await waiting.has_ended(await waiting.add("sweep"))
        await waiting.has_ended(await waiting.add("decay"))


async def test_an_interrupted_run_is_gone_on_with_and_an_ended_one_is_not(waiting: Waiting) -> None:
    interrupted, failed = await waiting.add("sweep"), await waiting.add("decay")
    await waiting.runs.begin(interrupted, units=0, partitions=1)
    await waiting.runs.finish(failed, RunState.FAILED, "it was so")

    async with waiting.scheduler():
        await waiting.has_ended(interrupted)
        await asyncio.sleep(0.5)

    assert [interrupted] == LAUNCHED
    assert waiting.state(failed) == "failed"


async def test_a_run_by_other_settings_is_left_to_these_and_ended_after_a_day(waiting: Waiting) -> None:
    chosen = {"is_scheduled": False, "launcher": "tests.support.job_process:launch_here"}
    own = settings_digest(settings_for(waiting.url, waiting.folder, jobs=chosen))
    others = [await waiting.add(tenant=name, settings_digest=name) for name in ("a", "b")]
    old = await waiting.add(tenant="c", settings_digest="c")
    same = await waiting.add(tenant="d", settings_digest=own)
    with psycopg.connect(waiting.url) as connection:
        connection.execute("UPDATE job_runs SET created_at = now() - interval '25 hours' WHERE id = %s", [old])
    async with waiting.scheduler():
        await waiting.has_ended(same)
        failed = await waiting.has_ended(old, RunState.FAILED)
        # After a look at all that is open.
        await waiting.has_ended(await waiting.add(tenant="e"))

    assert [waiting.state(run) for run in others] == ["queued", "queued"]
    assert "by its settings" in (failed.error or "")


async def test_while_somebody_else_drives_a_run_nothing_is_started(waiting: Waiting) -> None:
    run = await waiting.add("sweep")
    await waiting.runs.begin(run, units=0, partitions=1)

    async with job_lock(waiting.url, (await waiting.runs.get(run)).order) as is_ours, waiting.scheduler():
        await asyncio.sleep(1)
        during = list(LAUNCHED)
        assert is_ours
    async with waiting.scheduler():
        await waiting.has_ended(run)

    assert during == []
    assert [run] == LAUNCHED


async def test_what_cannot_be_started_is_tried_again_once_at_each_look(waiting: Waiting) -> None:
    run = await waiting.add("sweep")

    began = time.monotonic()
    async with waiting.scheduler("launch_nothing"):
        await until_seen(lambda: len(LAUNCHED) >= 3)
        await asyncio.sleep(0.5)
    looks = (time.monotonic() - began) / scheduling.LOOK_S

    assert len(LAUNCHED) <= looks + 1
    assert waiting.state(run) == "queued"


async def test_only_so_many_runs_are_driven_at_the_same_time_the_oldest_first(waiting: Waiting) -> None:
    queued = [await waiting.add("sweep", tenant=f"t{number}") for number in range(MOST_DRIVEN + 3)]

    async with waiting.scheduler("launch_forever"):
        await until_seen(lambda: len(LAUNCHED) >= MOST_DRIVEN)
        await asyncio.sleep(0.5)

    assert queued[:MOST_DRIVEN] == LAUNCHED


async def test_an_undo_goes_through_the_queue(waiting: Waiting) -> None:
    rows = idle(waiting.url, "acme", 2)
    async with waiting.scheduler():
        run = await waiting.add("sweep")
        await waiting.has_ended(run)
        assert cold(waiting.url) == rows

        await request_undo(waiting.runs, run, datetime.now(UTC), 30 * DAY)
        await waiting.has_ended(run, RunState.UNDONE)

    assert cold(waiting.url) == 0


async def scheduled_before(waiting: Waiting, ago: timedelta, job: JobName = "sweep") -> None:
    """Let a job have run by its schedule some time ago."""
    run = await waiting.add(job, tenant=None, requested_by=BY_SCHEDULE)
    await waiting.runs.finish(run, RunState.DONE)
    with psycopg.connect(waiting.url) as connection:
        connection.execute("UPDATE job_runs SET created_at = now() - %s WHERE id = %s", [ago, run])


def ordered(url: str) -> int:
    return int(one_of(url, "SELECT count(*) FROM job_runs WHERE requested_by = 'schedule' AND job = 'sweep'"))


def daily(hours_from_now: int) -> dict[str, Any]:
    """Return a schedule by which only the sweep runs, at the hour that is so far from now."""
    at = datetime.now(UTC) + timedelta(hours=hours_from_now)
    return {
        "is_scheduled": True,
        "schedule": dict.fromkeys(JOB_NAMES, "off") | {"sweep": f"{at.minute} {at.hour} * * *"},
    }


async def test_what_was_missed_is_ordered_once(waiting: Waiting) -> None:
    await scheduled_before(waiting, 5 * DAY)

    async with waiting.scheduler(**daily(-1)):
        await until_seen(lambda: ordered(waiting.url) == 2)
        await until_seen(lambda: len(LAUNCHED) == 1)
    async with waiting.scheduler(**daily(-1)):
        await asyncio.sleep(0.5)

    assert ordered(waiting.url) == 2


async def test_what_was_not_missed_or_never_ran_waits_for_its_time(waiting: Waiting) -> None:
    async with waiting.scheduler(**daily(-1)):
        await asyncio.sleep(0.5)
    never_ran = ordered(waiting.url)
    await scheduled_before(waiting, timedelta(minutes=30))
    async with waiting.scheduler(**daily(-1)):
        await asyncio.sleep(0.5)

    assert never_ran == 0
    assert ordered(waiting.url) == 1


async def test_a_job_whose_last_order_still_waits_is_not_ordered_again(waiting: Waiting) -> None:
    async with waiting.scheduler("launch_forever", **daily(+2)) as scheduler:
        await asyncio.gather(*(scheduler.order("sweep") for _ in range(5)))

    assert ordered(waiting.url) == 1


async def test_two_schedulers_do_no_harm(waiting: Waiting) -> None:
    rows = idle(waiting.url, "acme", 20)
    await scheduled_before(waiting, 5 * DAY)

    async with waiting.scheduler(**daily(-1)), waiting.scheduler(**daily(-1)):
        runs = [await waiting.add("sweep", tenant=tenant) for tenant in ("acme", "globex")]
        ended = [await waiting.has_ended(run) for run in runs]
        await until_seen(lambda: not one_of(waiting.url, "SELECT count(*) FROM job_runs WHERE state <> 'done'"))

    assert ordered(waiting.url) in {2, 3}
    assert cold(waiting.url) == rows
    assert one_of(waiting.url, "SELECT count(*) FROM job_changes") == rows
    assert {run.state for run in ended} == {RunState.DONE}


async def test_it_goes_on_when_postgres_has_cut_its_connections(waiting: Waiting) -> None:
    await scheduled_before(waiting, 5 * DAY)
    async with waiting.scheduler():
        await waiting.has_ended(await waiting.add("sweep"))
        with psycopg.connect(waiting.url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%LISTEN%'"
            )
        await waiting.has_ended(await waiting.add("decay"))


# --- A real Ray, on which the command line and the scheduler run.


@dataclass
class Cluster:
    """A Ray of these tests alone, with a database for each."""

    head: RayHead
    variables: dict[str, str]

    def of(self, url: str, **settings: Any) -> dict[str, str]:
        """Return the environment in which Lamina's processes use a database, and this Ray."""
        stores = {"LAMINA_POSTGRES__KIND": "server", "LAMINA_POSTGRES__URL": url, "LAMINA_EMBEDDING__KIND": "hashing"}
        # Each worker is a process that imports everything: one at a time where a test does not need two.
        chosen = {f"LAMINA_JOBS__{name.upper()}": str(value) for name, value in {"parallelism": 1, **settings}.items()}
        return {**self.variables, **stores, **chosen, "LAMINA_GRAPH__KIND": "off", "RAY_ADDRESS": self.head.address}

    def workers(self) -> list[int]:
        """Return the processes that work on a partition right now."""
        return [pid for pid in descendants(self.head.process.pid) if command_line(pid).startswith("ray::work")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="lm-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # Without a token: a fork has Ray from its parent, which read the variables long ago.
        flags = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT)}
        flags["RAY_prestart_worker_first_driver"] = "0"
        (folder / "data").mkdir()
        variables = {**environment(folder / "data"), **flags, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
        with ray_head(folder, variables, "--num-cpus", "2") as head:
            yield Cluster(head, variables)


def jobs(variables: dict[str, str], *arguments: str) -> Fork:
    """Start `python -m jobs` in a fork."""
    return Fork(JOBS, arguments, variables, folder_of(variables))


def folder_of(variables: dict[str, str]) -> Path:
    return Path(tempfile.mkdtemp(dir=variables["LAMINA_DATA_DIR"]))


def jobs_command(variables: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run `python -m jobs` as a user does."""
    command = [sys.executable, "-m", "jobs", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=variables, timeout=TIMEOUT_S
    )


def ended(run: "Fork | subprocess.CompletedProcess[str]", code: int = 0) -> str:
    done = run.wait(TIMEOUT_S) if isinstance(run, Fork) else run
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout if code != 1 else done.stderr


def on_ray(program: Callable[[], None], variables: dict[str, str], *arguments: str) -> str:
    return ended(Fork(program, arguments, variables, folder_of(variables)))


def niceness(pids: list[int]) -> list[int]:
    return [os.getpriority(os.PRIO_PROCESS, pid) for pid in pids]


# 320 rows, two partitions, and two workers at a time.
MANY, TWO_WORKERS = 40, {"page_rows": 2, "partitions": 2, "parallelism": 2}


@contextmanager
def held_up(url: str) -> Iterator[None]:
    """Keep runs over many rows from their end within the block: somebody holds the notes of the last namespaces."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT FROM notes WHERE namespace > 'n3' FOR UPDATE")
        yield
        connection.rollback()


def changed(url: str) -> int:
    return int(one_of(url, "SELECT coalesce(sum((counts ->> 'changed')::int), 0) FROM job_partitions"))


def test_the_command_line_runs_a_job_of_one_tenant_and_its_undo(cluster: Cluster, database: str) -> None:
    rows, variables = idle(database, "acme", 6), cluster.of(database)
    idle(database, "globex", 2)

    first = ended(jobs(variables, "sweep", "--scope", "tenant=acme"))
    second = ended(jobs(variables, "sweep", "--scope", "tenant=acme"))
    swept = cold(database, "acme"), cold(database, "globex")
    run = re.search(r"run +(\S{36})", first)
    assert run is not None
    undone = ended(jobs(variables, "sweep", "--undo", run[1]))

    assert swept == (rows, 0)
    assert "sweep on tenant=acme: done" in first
    assert f"changed  {rows} of {rows} planned" in first
    assert "changed  0 of 0 planned" in second
    assert f"{rows} of {rows} rows are as they were" in undone
    assert cold(database) == 0


def test_a_run_that_is_killed_is_gone_on_with_by_the_next_call(cluster: Cluster, database: str) -> None:
    rows, variables = idle(database, "acme", MANY, notes=8), cluster.of(database, **TWO_WORKERS)

    with held_up(database):
        killed = jobs(variables, "sweep", "--scope", "tenant=acme")
        until(lambda: changed(database) > 20)
        killed.kill()
        left = rows - cold(database)
        until(lambda: not cluster.workers())
    said = ended(jobs(variables, "sweep", "--scope", "tenant=acme"))

    assert 0 < left < rows
    assert cold(database) == changed(database) == rows
    assert one_of(database, "SELECT count(*) FROM job_runs") == 1
    assert f"changed  {rows} of {rows} planned" in said


def test_a_worker_stands_back_and_is_replaced_when_it_is_killed(cluster: Cluster, database: str) -> None:
    rows, variables = idle(database, "acme", MANY, notes=8), cluster.of(database, **TWO_WORKERS)

    with held_up(database):
        running = jobs(variables, "sweep", "--scope", "tenant=acme")
        until(lambda: changed(database) > 20 and niceness(cluster.workers()) == [LOWEST, LOWEST])
        workers = cluster.workers()
        os.kill(workers[0], signal.SIGKILL)
        during = changed(database)
    said = ended(running)
    others = {int(one) for one in on_ray(print_niceness, variables).split()}

    assert during < rows
    assert cold(database) == changed(database) == rows
    assert f"changed  {rows} of {rows} planned" in said
    assert len(others) == 1, "a process that stood back was given to somebody else"
    assert max(others) < LOWEST


def test_exit_codes_tell_a_script_what_happened(cluster: Cluster, database: str) -> None:
    near_duplicates(database, "acme")
    variables = cluster.of(database)

    held = ended(jobs(variables, "dedup", "--scope", "tenant=acme"), code=3)
    forced = ended(jobs(variables, "dedup", "--scope", "tenant=acme", "--force"))

    assert "1 of 3 rows" in held
    assert "--force does it anyway" in held
    assert "1 of them taken out of searches" in forced
    assert all("━" not in said and "\x1b" not in said for said in (held, forced))
    assert "dedup: 0 of 1 units, 0 rows seen, 0 changed\n" in forced


def test_a_wrong_command_is_one_line_and_starts_no_ray(database: str) -> None:
    variables = environment(Path("nowhere")) | {"LAMINA_POSTGRES__KIND": "server", "LAMINA_POSTGRES__URL": database}

    errors = ended(jobs_command(variables, "gossip"), code=1)

    assert "choose one of sweep, decay, dedup" in errors
    assert errors.count("\n") == 1


def test_the_command_of_the_manifests_is_submitted_to_a_cluster(cluster: Cluster, database: str) -> None:
    rows, variables = idle(database, "acme", 3), cluster.of(database)
    told = {name: value for name, value in variables.items() if name.startswith("LAMINA_")}
    environ = ["--runtime-env-json", json.dumps({"env_vars": told})]
    submit = [
        RAY,
        "job",
        "submit",
        "--address",
        cluster.head.dashboard,
        *environ,
        "--",
        sys.executable,
        "-m",
        "jobs",
        "sweep",
    ]
    alone = {name: value for name, value in variables.items() if name != "RAY_ADDRESS"}

    def submitted() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(submit, capture_output=True, text=True, check=False, cwd=ROOT, env=alone)

    tries: list[subprocess.CompletedProcess[str]] = []
    until(lambda: "No available agent" not in (done := submitted()).stderr and tries.append(done) is None)
    (done,) = tries

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"changed  {rows} of {rows} planned" in done.stdout
    assert cold(database) == rows


def test_a_run_that_fails_tells_its_first_error_in_one_line(cluster: Cluster, database: str) -> None:
    idle(database, "acme", 2)
    with psycopg.connect(database) as connection:
        connection.execute("ALTER TABLE epochs RENAME TO nowhere")

    errors = ended(jobs(cluster.of(database), "sweep"), code=1)

    assert 'relation "epochs" does not exist' in errors
    assert errors.count("\n") == 1
    assert one_of(database, "SELECT state FROM job_runs") == "failed"
    assert 'relation "epochs" does not exist' in one_of(database, "SELECT error FROM job_runs")


def test_a_scope_that_fails_is_a_problem_of_the_run(cluster: Cluster, database: str) -> None:
    idle(database, "acme", 2)
    with psycopg.connect(database) as connection:
        connection.execute("ALTER TABLE outbox RENAME TO nowhere")

    told = ended(jobs(cluster.of(database), "sweep"), code=4)

    assert 'relation "outbox" does not exist' in told
    assert one_of(database, "SELECT state FROM job_runs") == "done"


def test_without_a_cluster_the_command_line_starts_ray_for_itself(cluster: Cluster, database: str) -> None:
    rows = idle(database, "acme", 3)
    variables = cluster.of(database)
    del variables["RAY_ADDRESS"]

    assert f"changed  {rows} of {rows} planned" in ended(jobs_command(variables, "sweep"))


def namespace_of(url: str, tmp_path: Path) -> str:
    return jobs_namespace(settings_for(url, tmp_path))


async def queued(url: str, tmp_path: Path, job: JobName = "sweep") -> UUID:
    async with build_pool(settings_for(url, tmp_path)) as pool:
        return await JobRuns(pool).add(Order(job, Area("acme"), datetime.now(UTC)))


def state_of(url: str, run: UUID) -> str:
    return str(one_of(url, "SELECT state FROM job_runs WHERE id = %s", run))


async def test_the_scheduler_on_ray_comes_back_when_it_is_killed_and_goes_on_with_what_it_drove(
    cluster: Cluster, database: str, tmp_path: Path
) -> None:
    rows, variables = idle(database, "acme", MANY, notes=8), cluster.of(database, **TWO_WORKERS)
    namespace = namespace_of(database, tmp_path)
    run = await queued(database, tmp_path)

    with held_up(database):
        on_ray(open_a_scheduler, variables)
        until(lambda: changed(database) > 20)
        on_ray(kill_actors, variables, namespace)
        during = changed(database)
    until(lambda: state_of(database, run) == "done", lambda: state_of(database, run))
    later = await queued(database, tmp_path, "decay")
    until(lambda: state_of(database, later) == "done", lambda: state_of(database, later))
    on_ray(kill_actors, variables, namespace, "for good")

    assert during < rows
    assert cold(database) == rows
    assert one_of(database, "SELECT count(*) FROM job_changes WHERE run_id = %s", run) == rows


async def test_a_scheduler_of_other_settings_takes_the_place_of_the_old_one(
    cluster: Cluster, database: str, tmp_path: Path
) -> None:
    idle(database, "acme", 3)
    first, again, other = on_ray(open_three_schedulers, cluster.of(database)).split()
    run = await queued(database, tmp_path)
    until(lambda: state_of(database, run) == "done", lambda: state_of(database, run))
    on_ray(kill_actors, cluster.of(database), namespace_of(database, tmp_path), "for good")

    assert first == again
    assert first != other


def test_a_schedule_that_cannot_be_read_is_refused_where_the_service_is_started(tmp_path: Path) -> None:
    settings = settings_for("postgresql://nowhere/db", tmp_path, jobs={"schedule": {"sweep": "99 * * * *"}})

    with pytest.raises(Misconfigured, match=r"jobs\.schedule\.sweep is '99 \* \* \* \*'"):
        open_scheduler(settings)
