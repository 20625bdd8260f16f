"""Jobs and their scheduler on a real Ray, where workers and schedulers are killed."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from lamina.core.areas import Area
from lamina.core.runs import JobName, Order
from lamina.stores.postgres.job_runs import JobRuns
from lamina.wiring.jobs import jobs_namespace
from lamina.wiring.stores import build_pool
from tests.support.application import settings_for
from tests.support.forks import JOBS, Fork
from tests.support.idle_notes import cold, idle, one_of
from tests.support.on_ray import kill_actors, open_a_scheduler, open_three_schedulers, print_niceness
from tests.support.ray_head import RAY, RayHead, ray_head
from tests.support.service import ROOT, command_line, descendants, environment

TIMEOUT_S = 180.0
# The niceness of a worker: Ray's processes have 15, and jobs.nice adds 10.
LOWEST = 19
NEAR = (
    "the crane at the northern pier was inspected by the second crew as the tide came in and its bolts were open",
    "The crane at the northern pier was inspected by the second crew, as the tide came in and its bolts were open.",
    "somebody painted the boat house",
)


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


def until(check: Callable[[], Any], told: Callable[[], Any] = lambda: "") -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not check():
        assert time.monotonic() < deadline, told()
        time.sleep(0.05)


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
