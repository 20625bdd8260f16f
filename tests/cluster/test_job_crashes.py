"""A run that is killed again and again, and resumed, leaves the same database as one that nobody disturbed."""

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from lamina.core.areas import Area
from lamina.core.runs import JobName, Order
from lamina.embedded import EmbeddedPostgres
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.job_runs import JobRuns
from lamina.wiring.jobs import JOBS
from lamina.wiring.stores import build_pool
from tests.support.application import Application, running, settings_for
from tests.support.databases import name_of, new_database
from tests.support.effort import IS_LONG
from tests.support.job_process import Death, JobProcess, Task, deaths, job_process

SEED = 20_260_731
# One job of each shape is killed ten times: rows that change, notes that others replace, files beside the database.
SHAPES: set[JobName] = {"sweep", "consolidation", "archival"}
MOMENT = datetime.now(UTC)
# `audit` changes no row but the outbox's, and needs the projections, which a process of their own owns. `caches` purges
# in transactions of its own: what it removed is removed, but a page that died after that counts less.
LEFT_OUT = {"audit", "caches"}
NAMED: list[JobName] = [name for name in JOBS if name not in LEFT_OUT]
SHARED: list[JobName] = [name for name in ("sweep", "dedup", "consolidation", "archival") if name in JOBS]
WORKERS = 3

# What differs between any two runs of the same: their ids, their times, and numbers that count transactions.
VARIES: Mapping[str, set[str]] = {
    "job_runs": {"id", "created_at", "started_at", "finished_at"},
    "job_partitions": {"run_id", "updated_at"},
    "job_changes": {"run_id"},
    "outbox": {"seq", "created_at"},
    "epochs": {"epoch", "outbox_seq", "taught_at", "written_at"},
    "embedding_generations": {"generation", "created_at"},
    "archived_notes": {"run_id", "file"},
    "edges": {"recorded_at"},
    "procedure_outcomes": {"id"},
    # Of what a job changed, the event names the run.
    "events": {"seq", "id", "created_at", "memory_ids"},
}
SETTINGS: Mapping[str, dict[str, Any]] = {
    "compaction": {"jobs": {"compaction": {"budget_tokens": 256}, "summaries": {"tokens": 40}}},
    # It would take 12 of 45 notes from one namespace, which is held back, and 16 of 71 from the other one.
    "dedup": {"jobs": {"most_removed": 0.1}},
    "consolidation": {"jobs": {"most_removed": 0.9}},
    "archival": {"jobs": {"most_removed": 0.9}},
    "reembed": {"embedding": {"kind": "hashing", "seed": 2}},
}
PAGES: Mapping[str, int] = {"consolidation": 20, "dedup": 15, "entities": 1, "edges": 1}
THINGS = ("crane", "gate", "lantern", "pump", "winch", "mast")
PEOPLE = ("Ada Lovelace", "Mira Novak", "Jonas Weber")
FIRMS = ("Analytical Engines", "Harbour Works", "Northern Lights")
AGES_DAYS = (3, 20, 45, 120, 260)


@dataclass(frozen=True)
class Base:
    """A database with memories of all kinds, to be copied."""

    postgres: EmbeddedPostgres
    name: str


@pytest.fixture(scope="module")
async def base(postgres: EmbeddedPostgres) -> AsyncIterator[Base]:
    with new_database(postgres) as url, tempfile.TemporaryDirectory(prefix="lamina-test-") as folder:
        settings = settings_for(url, Path(folder), write={"key_cache_s": 0, "near_duplicate": 1})
        async with running(settings, url, HashingModel(), follow=False) as app:
            for tenant in ("acme", "globex"):
                await fill(app.for_tenant(tenant), tenant)
        with psycopg.connect(url) as connection:
            grow_old(connection)
        yield Base(postgres, name_of(url))


async def fill(app: Application, tenant: str) -> None:
    for workspace in ("docks", "yard"):
        for namespace in ("default", "crew"):
            scope = {"workspace": workspace, "namespace": namespace}
            await post(app, "/v1/notes/batch", notes=notes_of(f"{tenant} {workspace} {namespace}"), **scope)
            if namespace == "default":
                await post(app, "/v1/notes/batch", notes=notes_of(namespace)[:6], user="ann", **scope)
                await post(app, "/v1/notes/batch", notes=berths(), **scope)
            await post(app, "/v1/graph/edges", edges=EDGES, **scope)
            for session in ("morning", "evening"):
                await post(app, "/v1/turns", messages=talk(session), session=session, **scope)
    await app.close_clients()


async def post(app: Application, path: str, **body: Any) -> None:
    answer = await app.client().post(path, json=body)
    assert answer.status_code == 200, answer.text


def notes_of(place: str) -> list[dict[str, Any]]:
    """Return notes of several months: near-duplicates, related ones, days with several, and what tells of people."""
    found = []
    for group, age in enumerate(AGES_DAYS):
        thing, at = THINGS[group], (MOMENT - timedelta(days=age)).isoformat()
        for pause in ("", ","):  # near-duplicates
            content = (
                f"The {thing} at the northern pier of {place} was inspected by the second crew{pause} before the tide "
                f"came in and they found its bolts loose"
            )
            found.append({"content": content, "event_at": at})
        for colour in ("green", "white", "black"):  # related
            content = f"The {thing} of {place} beside the long quay wall was painted {colour} for the summer fair"
            found.append({"content": content, "event_at": at, "importance": 0.6})
        content = f"{PEOPLE[group % 3]} works at {FIRMS[group % 2]} and rents the {thing} shed"
        found.append({"content": content, "event_at": at})
        found += [
            {"content": f"{place} {word} {age}: {n} of {group}", "event_at": at} for n, word in enumerate(THINGS[:3])
        ]
    return found


def berths() -> list[dict[str, Any]]:
    at = (MOMENT - timedelta(days=15)).isoformat()
    return [{"content": f"Berth {number} is let to vessel {number * 7}", "event_at": at} for number in range(20)]


EDGES = [
    {"subject": person, "type": "works_with", "object": other, "strength": 0.9}
    for person in ("Ada Lovelace", "Mira Novak")
    for other in ("Harbour Works", "Northern Lights", "Analytical Engines", "Jonas Weber")
]


def talk(session: str) -> list[dict[str, Any]]:
    said = "the freight of the {} ship is weighed and sealed before anybody signs for it, number {}"
    return [
        {
            "role": "user" if number % 2 else "assistant",
            "content": said.format(session, number),
            "occurred_at": (MOMENT - timedelta(days=2, minutes=-number)).isoformat(),
        }
        for number in range(24)
    ]


def grow_old(connection: "psycopg.Connection[Any]") -> None:
    """Let everything be as old as it tells of; notes of the last half year but one are cold."""
    connection.execute(
        "UPDATE notes SET created_at = event_at, updated_at = event_at, last_hit_at = event_at,"
        " temperature_changed_at = event_at"
    )
    connection.execute(
        "UPDATE notes SET temperature = 'cold', temperature_changed_at = event_at + interval '8 days'"
        " WHERE event_at < %s",
        [MOMENT - timedelta(days=100)],
    )
    connection.execute("UPDATE note_chunks SET tsv = NULL FROM notes WHERE notes.id = note_id AND temperature = 'cold'")
    aged = sql.SQL(
        "UPDATE {} SET last_seen_at = %s - mod(abs(hashtext(id::text)), 300) * interval '1 day',"
        " first_seen_at = %s - interval '1 year'"
    )
    for table in ("entities", "edges"):
        connection.execute(aged.format(sql.Identifier(table)), [MOMENT, MOMENT])
    # Each session is a run of an agent, with the tools that it called.
    connection.execute(
        "INSERT INTO agent_turns (id, tenant, workspace, namespace, session_id, last_position, digest, tools,"
        " failed_calls, succeeded, recorded_at)"
        " SELECT gen_random_uuid(), tenant, workspace, namespace, session_id, next_position - 1, '',"
        " ARRAY['look', 'lift', session_id], 0, true, %s::timestamptz + next_position * interval '1 s' FROM sessions",
        [MOMENT - timedelta(days=1)],
    )
    connection.execute("DELETE FROM outbox")


def dumped(url: str) -> dict[str, list[Any]]:
    """Return the rows of every table but what varies between any two runs, in an order that does not depend on it."""
    with psycopg.connect(url, row_factory=dict_row) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        models = {
            row["generation"]: row["model"]
            for row in connection.execute("SELECT generation, model FROM embedding_generations").fetchall()
        }
        return {table["tablename"]: rows_of(connection, table["tablename"], models) for table in tables}


def rows_of(connection: "psycopg.Connection[dict[str, Any]]", table: str, models: Mapping[int, str]) -> list[Any]:
    rows = connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))).fetchall()
    for plan in (row["plan"] for row in rows if "plan" in row):
        plan.pop("attempt", None)  # One more for each kill.
    kept = [
        {
            column: models[value] if column == "generation" else value
            for column, value in row.items()
            if column not in VARIES.get(table, set()) | times_of_writing(row)
        }
        for row in rows
    ]
    unordered = {repr(row): row for row in kept} if table == "outbox" else dict(enumerate(kept))
    return sorted(unordered.values(), key=repr)


def times_of_writing(row: Mapping[str, Any]) -> set[str]:
    """Return the columns that hold the time of day at which a job wrote a row, whatever its moment is."""
    if row.get("is_summary"):
        return {"created_at"}
    return {"temperature_changed_at"} if row.get("source", "").startswith("job:") else set()


def differing(one: Mapping[str, list[Any]], other: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return, of tables that differ, the first rows that only one of them has."""
    return {
        table: tuple(
            [row for row in these if row not in those][:2]
            for these, those in ((rows, other[table]), (other[table], rows))
        )
        for table, rows in one.items()
        if rows != other[table]
    }


@pytest.fixture(scope="module")
def processes() -> Iterator[list[JobProcess]]:
    with ExitStack() as stack:
        yield [stack.enter_context(job_process()) for _ in range(WORKERS)]


@pytest.fixture(scope="module")
def process(processes: list[JobProcess]) -> JobProcess:
    return processes[0]


@contextmanager
def task_on_a_copy(base: Base, job: JobName) -> Iterator[Task]:
    with new_database(base.postgres, base.name) as url, tempfile.TemporaryDirectory(prefix="lamina-test-") as folder:
        yield Task(url, folder, job, MOMENT.isoformat(), page=PAGES.get(job, 5), settings=SETTINGS.get(job, {}))


@pytest.mark.parametrize("job", NAMED)
def test_a_run_that_is_killed_again_and_again_leaves_the_database_of_an_undisturbed_one(
    base: Base, process: JobProcess, job: JobName
) -> None:
    kills = 10 if IS_LONG or job in SHAPES else 3
    with task_on_a_copy(base, job) as task:
        before = dumped(task.url)
        undisturbed = process.run(task)
        expected = dumped(task.url)

    with task_on_a_copy(base, job) as task:
        died = [
            process.run(replace(task, death=death)).is_killed
            for death in deaths(SEED, kills, most_trips=undisturbed.trips // kills)
        ]
        resumed = process.run(task)
        found = dumped(task.url)

    assert died == [True] * kills
    # What the killed ones did is not done again; each takeover, and each second of a busy machine, adds a few trips.
    assert resumed.trips < 1.1 * undisturbed.trips
    assert differing(expected, found) == {}
    changed = {table for table in before if before[table] != expected[table]}
    assert changed > {"job_runs", "job_partitions"}
    assert any(part["held"] for part in expected["job_partitions"]) is (job == "dedup")


@pytest.mark.parametrize("job", SHARED)
async def test_workers_that_share_every_partition_apply_each_page_once_though_one_is_killed(
    base: Base, processes: list[JobProcess], job: JobName
) -> None:
    with task_on_a_copy(base, job) as task:
        undisturbed = processes[0].run(task)
        expected = dumped(task.url)

    with task_on_a_copy(base, job) as task:
        run = await begun(task, partitions=task.partitions)
        parts = [replace(task, run=run, partition=number) for number in range(task.partitions)]
        chance = random.Random(SEED)  # noqa: S311 - a test's
        dying = [replace(part, death=Death(chance.randint(5, undisturbed.trips // 10), "unanswered")) for part in parts]
        orders = [parts, parts[::-1], [one for both in zip(dying, parts, strict=True) for one in both]]
        with ThreadPoolExecutor(WORKERS) as threads:
            outcomes = await asyncio.gather(
                *(
                    asyncio.wrap_future(threads.submit(lambda worker, todo: [worker.run(one) for one in todo], *pair))
                    for pair in zip(processes, orders, strict=True)
                )
            )
        processes[0].run(task)
        found = dumped(task.url)

    assert any(outcome.is_killed for outcome in outcomes[-1])
    assert differing(expected, found) == {}


async def begun(task: Task, *, partitions: int) -> str:
    """Return the id of a run that is cut into partitions on which nobody works yet."""
    settings = settings_for(task.url, Path(task.folder))
    async with build_pool(settings) as pool:
        runs = JobRuns(pool)
        order = Order(task.job, Area(), datetime.fromisoformat(task.moment))
        id_ = await runs.add(order)
        await runs.begin(id_, units=await runs.count_units(order, "namespaces"), partitions=partitions)
    return str(id_)
