"""Runs of maintenance jobs: their rows, their partitions, and the locks that keep two runs apart."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb

from lamina.core.areas import Area
from lamina.core.events import Event, EventKind
from lamina.core.memories import new_id
from lamina.core.runs import OPEN, Cursor, JobName, Order, Partition, Run, RunCounts, RunState, SkippedScope
from lamina.errors import Conflict, NotFound, Overloaded
from lamina.stores.postgres.connection import Connection, connect, in_transaction
from lamina.stores.postgres.events import record_event
from lamina.stores.postgres.idempotency import Json, Once, answer_once
from lamina.stores.postgres.job_changes import delete_old_changes
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("job_runs.sql")

CHANNEL = "lamina_jobs"
MOST_PROBLEMS = 100
UNITS_PAGE = 500
# How long a run that can no longer be undone is still listed.
KEPT = timedelta(days=60)
INTERRUPTED = "it was interrupted, and nobody went on with it by its settings"
_LOCK_SEED = 0x6A6F6273  # "jobs"
_UNITS = {"namespaces": QUERIES["list_job_namespaces"], "tenants": QUERIES["list_job_tenants"]}
_COUNT_UNITS = {"namespaces": QUERIES["count_job_namespaces"], "tenants": QUERIES["count_job_tenants"]}


class RunPlan(NamedTuple):
    """How a run is cut, and how often it was begun."""

    partitions: int
    attempt: int


class JobRuns(PostgresStore):
    """Reads and writes the runs."""

    async def add(self, order: Order, once: Once | None = None, *, most_open: int | None = None) -> UUID:
        """Queue a run, once for each idempotency key, and notify the scheduler; return its id.

        Args:
            order: The order.
            once: Identifies it, if it may come again.
            most_open: How many runs of its tenant may wait or go on, this one included.

        Raises:
            Overloaded: If there are so many already.
        """
        id_ = new_id()
        parameters = {
            "id": id_,
            "job": order.job,
            **order.area.ids(),
            "is_dry_run": order.is_dry_run,
            "is_forced": order.is_forced,
            "requested_by": order.requested_by,
            "moment": order.moment,
            "settings_digest": order.settings_digest,
        }

        async def insert(connection: Connection) -> Json:
            if most_open is not None:
                await connection.execute(QUERIES["hold_orders"], parameters)
                row = await (await connection.execute(QUERIES["count_open_runs"], parameters)).fetchone()
                if row is None or row["runs"] >= most_open:
                    raise Overloaded("jobs", f"{most_open} runs of this tenant wait or go on; wait for their end")
            await connection.execute(QUERIES["insert_job_run"], parameters)
            await connection.execute(f"NOTIFY {CHANNEL}".encode())
            return {"run": str(id_)}

        return UUID((await answer_once(self._pool, once, insert))["run"])

    async def get(self, id_: UUID, tenant: str | None = None) -> Run:
        """Return the run.

        Raises:
            NotFound: If there is no such run, or it is not about this tenant alone.
        """
        runs = await self._find(id=id_, tenant=tenant, limit=1)
        if not runs:
            raise NotFound("run", str(id_))
        return runs[0]

    async def latest(
        self,
        job: JobName | None = None,
        tenant: str | None = None,
        *,
        workspace: str | None = None,
        namespace: str | None = None,
        states: Sequence[RunState] | None = None,
        limit: int = 20,
        after: tuple[datetime, UUID] | None = None,
    ) -> list[Run]:
        """Return the latest runs, the last one first; with a workspace or namespace those on it or a part of it.

        Args:
            job: Only its runs.
            tenant: Only runs on this tenant alone.
            workspace: Only runs on it or a part of it.
            namespace: Only runs on it.
            states: Only runs in one of them.
            limit: Most runs.
            after: When the last run of the page before was ordered, and its id.
        """
        area = {"tenant": tenant, "workspace": workspace, "namespace": namespace}
        return await self._find(job=job, states=states, limit=limit, after=after, **area)

    async def open(self, limit: int = 100) -> list[Run]:
        """Return runs that are queued, running or being undone, the oldest first."""
        return await self._find(states=OPEN, limit=limit, oldest_first=True)

    async def last_at(self, job: JobName, requested_by: str) -> datetime | None:
        """Return when this requester last ordered a job."""
        row = await self._one(QUERIES["find_last_order"], {"job": job, "requested_by": requested_by})
        moment: datetime | None = row["at"]
        return moment

    async def _one(self, query: bytes, parameters: dict[str, Any]) -> DictRow:
        row = await self._row(query, **parameters)
        assert row is not None  # noqa: S101 - an aggregate is one row
        return row

    async def unfinished(self, order: Order) -> Run | None:
        """Return the unfinished run of the same job and kind on the same area by the same settings, if there is one."""
        row = await self._row(QUERIES["find_unfinished_run"], **_kind_of(order))
        return None if row is None else await self.get(row["id"])

    async def end_superseded(self, order: Order) -> None:
        """End interrupted runs of the same kind by other settings; the caller holds the lock on their area."""
        for row in await self._rows(QUERIES["find_superseded_runs"], **_kind_of(order)):
            await self.finish(row["id"], RunState.FAILED, INTERRUPTED)

    async def _find(self, **chosen: Any) -> list[Run]:
        names = ("id", "job", "tenant", "workspace", "namespace", "states")
        parameters = dict.fromkeys(names) | {"oldest_first": False} | chosen
        parameters["after_time"], parameters["after_id"] = parameters.pop("after", None) or (None, None)
        if parameters["states"] is not None:
            parameters["states"] = [str(state) for state in parameters["states"]]
        return [_run(row) for row in await self._rows(QUERIES["find_runs"], **parameters)]

    async def begin(self, id_: UUID, *, units: int, partitions: int) -> RunPlan:
        """Mark the run as running, at its next attempt; return its plan, which a resumed run keeps.

        Raises:
            Conflict: If it has ended.
        """
        plan = Jsonb({"units": units, "partitions": partitions})
        row = await self._row(QUERIES["begin_job_run"], id=id_, plan=plan)
        if row is None:
            raise Conflict(f"run {id_} has ended; start another one")
        return RunPlan(int(row["plan"]["partitions"]), int(row["plan"]["attempt"]))

    async def finish(
        self,
        id_: UUID,
        state: RunState,
        error: str | None = None,
        *,
        undone: RunCounts | None = None,
        attempt: int | None = None,
    ) -> None:
        """Write the final state of a run, or of its undo.

        Args:
            id_: The run.
            state: Its final state.
            error: What went wrong.
            undone: Counts of its undo.
            attempt: Which attempt ends; nothing is written if another one has gone on with the run, or it has ended.
        """
        parameters = {
            "id": id_,
            "state": state,
            "error": error,
            "undone": undone and Jsonb(asdict(undone)),
            "attempt": attempt,
        }

        async def act(connection: Connection) -> None:
            row = await (await connection.execute(QUERIES["finish_job_run"], parameters)).fetchone()
            # A run over all tenants is no event of one; those whose memories it changed have events of that.
            if row is not None and row["tenant"] is not None:
                place = (row["tenant"], row["workspace"], row["namespace"])
                facts = {"job": row["job"], "state": str(state), "is_dry_run": row["is_dry_run"]}
                await record_event(connection, Event(EventKind.JOB_FINISHED, *place, ids=(id_,), facts=facts))

        await in_transaction(self._pool, act)

    async def refuse(self, id_: UUID, state: RunState, error: str) -> None:
        """Return a run that cannot be undone to the state that it had, with the reason."""
        await self.reopen(id_, state, of=(RunState.UNDOING,))
        await self.finish(id_, state, error)

    async def reopen(self, id_: UUID, state: RunState, *, of: Sequence[RunState]) -> bool:
        """Move a run to another state if it is in one of these; report whether it was."""
        parameters = {"id": id_, "state": state, "states": [str(one) for one in of]}
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["reopen_job_run"], parameters)
            is_done = cursor.rowcount == 1
            await connection.execute(f"NOTIFY {CHANNEL}".encode())
        return is_done

    async def partition(self, run: UUID, number: int) -> Partition:
        """Return the progress of a run in one partition."""
        row = await self._row(QUERIES["begin_job_partition"], run_id=run, partition=number)
        assert row is not None  # noqa: S101 - the statement inserts it or returns it
        return Partition(row["partition"], row["cursor"], row["is_done"])

    async def units(self, order: Order, kind: str, partition: tuple[int, int], after: Area | None) -> list[Area]:
        """Return the next units of a partition.

        Args:
            order: The run's order.
            kind: ``namespaces`` or ``tenants``.
            partition: Its number, from 0, and the number of partitions.
            after: The last finished unit.
        """
        return [
            Area(row["tenant"], row["workspace"], row["namespace"])
            for row in await self._rows(
                _UNITS[kind],
                **order.area.ids(),
                partition=partition[0],
                partitions=partition[1],
                after=None if after is None else [*after.named()],
                limit=UNITS_PAGE,
            )
        ]

    async def count_units(self, order: Order, kind: str) -> int:
        """Count the units of an order."""
        row = await self._row(_COUNT_UNITS[kind], **order.area.ids())
        return int(row["units"]) if row else 0

    async def forget(self, before: datetime) -> int:
        """Delete the recorded changes of runs that finished before this time, and runs that finished long before."""

        async def act(connection: Connection) -> int:
            await connection.execute(QUERIES["delete_old_runs"], {"before": before - KEPT})
            return await delete_old_changes(connection, before)

        return await in_transaction(self._pool, act)


async def advance_partition(
    connection: Connection,
    run: UUID,
    partition: Partition,
    cursor: Cursor | None,
    counts: RunCounts,
    *,
    held: Sequence[SkippedScope] = (),
    problems: Sequence[str] = (),
    is_done: bool = False,
) -> bool:
    """Advance a partition, as the first statement of a page's transaction; report whether no other worker did."""
    parameters = {
        "run_id": run,
        "partition": partition.number,
        "expected": None if partition.cursor is None else Jsonb(partition.cursor),
        "cursor": None if cursor is None else Jsonb(cursor),
        "units": counts.units,
        "seen": counts.seen,
        "planned": counts.planned,
        "held": Jsonb([asdict(one) for one in held]),
        "problems": Jsonb(list(problems)),
        "most_problems": MOST_PROBLEMS,
        "is_done": is_done,
    }
    return (await connection.execute(QUERIES["advance_job_partition"], parameters)).rowcount == 1


async def run_area(connection: Connection, run: UUID) -> Area:
    """Return the area of a run."""
    row = await (await connection.execute(QUERIES["find_run_area"], {"id": run})).fetchone()
    assert row is not None  # noqa: S101 - the run is in progress
    return Area(**row)


async def count_changes(connection: Connection, run: UUID, partition: Partition, counts: RunCounts) -> None:
    """Add a page's changes to the counts, at the end of its transaction."""
    parameters = {"run_id": run, "partition": partition.number, "changed": counts.changed, "removed": counts.removed}
    await connection.execute(QUERIES["count_job_changes"], parameters)


@asynccontextmanager
async def job_lock(url: str, order: Order) -> AsyncIterator[bool]:
    """Try to lock a job on an area; yield whether it was free.

    A run on an area excludes runs on the same area, on parts of it, and on areas that contain it; runs on separate
    areas go on at the same time. The locks belong to a connection: they end with their holder.
    """
    ids = order.area.named()
    *above, own = [(order.job, *ids[:length]) for length in range(len(ids) + 1)]
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, row_factory=dict_row) as connection:
        try:
            for key in above:
                if not await _try_lock(connection, "pg_try_advisory_lock_shared", key):
                    yield False
                    return
            yield await _try_lock(connection, "pg_try_advisory_lock", own)
        finally:
            # Otherwise the next run of the job could still meet them: the server notices the end of a connection later.
            with suppress(psycopg.Error):
                await connection.execute("SELECT pg_advisory_unlock_all()")


async def _try_lock(connection: Connection, function: str, key: Sequence[str]) -> bool:
    text = f"SELECT {function}(hashtextextended(array_to_json(%s::text[])::text, {_LOCK_SEED})) AS took"
    cursor = await connection.execute(text.encode(), [list(key)])
    row = await cursor.fetchone()
    return bool(row and row["took"])


def _kind_of(order: Order) -> dict[str, Any]:
    return {
        **order.area.ids(),
        "job": order.job,
        "is_dry_run": order.is_dry_run,
        "is_forced": order.is_forced,
        "settings_digest": order.settings_digest,
    }


def _run(row: DictRow) -> Run:
    order = Order(
        job=row["job"],
        area=Area(row["tenant"], row["workspace"], row["namespace"]),
        moment=row["moment"],
        is_dry_run=row["is_dry_run"],
        is_forced=row["is_forced"],
        requested_by=row["requested_by"],
        settings_digest=row["settings_digest"],
    )
    return Run(
        id=row["id"],
        order=order,
        state=RunState(row["state"]),
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        undone_at=row["undone_at"],
        error=row["error"],
        plan=row["plan"],
        counts=RunCounts(*(int(row[name]) for name in RunCounts.__slots__)),
        held=tuple(SkippedScope(**held) for held in row["held"]),
        problems=tuple(row["problems"]),
        undone=None if row["undone"] is None else RunCounts(**row["undone"]),
    )
