"""The undo of a run: every row that nobody changed since gets back what it was."""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

from lamina.core.runs import Counts, Run, RunState, told_error
from lamina.errors import Conflict, Unavailable
from lamina.maintenance.changes import Changes
from lamina.maintenance.pages import Job, Undoes
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.job_changes import RELATIONS, Relation, RowChange, take_undone
from lamina.stores.postgres.job_runs import JobRuns, job_lock

PAGE = 2_000
TRIES = 3
_ENDED = (RunState.DONE, RunState.STOPPED, RunState.FAILED, RunState.UNDOING)


class Undo:
    """Undoes runs of one job.

    Args:
        url: Postgres, for the lock.
        pool: Connections to Postgres.
        job: What the run was one of.
        window: How long after its end a run can be undone.
    """

    def __init__(self, url: str, pool: Pool, job: Job[Any], *, window: timedelta) -> None:
        self._url = url
        self._pool = pool
        self._runs = JobRuns(pool)
        self._job = job
        self._window = window

    async def undo(self, id_: UUID, now: datetime, tenant: str | None = None) -> Counts:
        """Take a run back; one that was interrupted goes on.

        Returns:
            ``seen``: rows that the run had changed; ``changed``: those that are again as they were. The others were
            changed by somebody since, and stay.

        Raises:
            NotFound: If there is no such run, or it is not about this tenant alone.
            Conflict: If it cannot be undone, or not now.
        """
        run = await self._runs.get(id_, tenant)
        _refuse(run, now, self._window)
        async with job_lock(self._url, run.order) as is_ours:
            if not is_ours:
                raise Conflict(f"another run of {run.order.job} works on {run.order.area}; wait for its end")
            if not await self._runs.reopen(id_, RunState.UNDOING, of=_ENDED):
                raise Conflict(f"run {id_} is {run.state}; only what has ended is undone, and once")
            undone = await self._to_its_end(run)
            await self._runs.finish(id_, RunState.UNDONE, undone=undone)
        return undone

    async def _to_its_end(self, run: Run) -> Counts:
        """Take everything back; what fails at that is told, and can be asked for again."""
        try:
            return await self._back(run)
        except Unavailable:
            raise  # It goes on where it stands.
        except Conflict as error:
            await self._runs.refuse(run.id, RunState.STOPPED if run.held else RunState.DONE, f"undo: {error}")
            raise
        except Exception as error:
            await self._runs.finish(run.id, RunState.FAILED, f"undo: {told_error(error)}")
            raise

    async def _back(self, run: Run) -> Counts:
        undone = Counts()
        for relation in RELATIONS:
            while (page := await self._page(run, relation)).seen:
                undone += page
        while isinstance(self._job, Undoes) and (rest := await self._rest(self._job, run.id)).seen:
            undone += rest
        return undone

    async def _rest(self, job: Undoes, run: UUID) -> Counts:
        return await in_transaction(self._pool, lambda connection: job.undo(connection, run))

    async def _page(self, run: Run, relation: Relation) -> Counts:
        async def act(connection: Connection) -> Counts:
            taken = await take_undone(connection, run.id, relation, PAGE)
            changes = Changes(connection, None, run.order.moment)
            changed = await _change(changes, relation, taken)
            await changes.finish()
            return Counts(seen=len(taken), changed=changed)

        for _ in range(TRIES - 1):
            with suppress(psycopg.errors.UniqueViolation):  # Somebody writes what comes back; then it stays away.
                return await in_transaction(self._pool, act)
        return await in_transaction(self._pool, act)


async def _change(changes: Changes, relation: Relation, taken: list[RowChange]) -> int:
    change = {
        "notes": changes.notes,
        "entities": changes.entities,
        "edges": changes.edges,
        "messages": changes.messages,
    }[relation]
    return len(await change(taken))


async def request_undo(runs: JobRuns, id_: UUID, now: datetime, window: timedelta, tenant: str | None = None) -> None:
    """Have whoever works on the queue undo a run.

    Raises:
        NotFound: If there is no such run, or it is not about this tenant alone.
        Conflict: If it cannot be undone.
    """
    run = await runs.get(id_, tenant)
    _refuse(run, now, window)
    if not await runs.reopen(id_, RunState.UNDOING, of=_ENDED):
        raise Conflict(f"run {id_} is undone already, or is being undone")


def _refuse(run: Run, now: datetime, window: timedelta) -> None:
    if run.order.is_dry_run:
        raise Conflict(f"run {run.id} was a dry run; it changed nothing")
    if run.state not in _ENDED:
        raise Conflict(f"run {run.id} is {run.state}; only what has ended is undone, and once")
    if run.state is not RunState.UNDOING and run.finished_at is not None and now - run.finished_at > window:
        raise Conflict(f"run {run.id} ended {now - run.finished_at} ago; a run can be undone for {window}")
