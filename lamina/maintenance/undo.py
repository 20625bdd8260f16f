"""The undo of a run: its rows get their old values back, unless another write has changed them since."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from lamina.core.runs import NOT_UNDONE, Run, RunCounts, RunState, error_line
from lamina.errors import Conflict, Unavailable
from lamina.maintenance.job import Job, Undoes
from lamina.maintenance.row_writer import RowWriter
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.job_changes import RELATIONS, Relation, take_undone
from lamina.stores.postgres.job_runs import JobRuns, job_lock

PAGE = 2_000
TRIES = 3
_ENDED = (RunState.DONE, RunState.STOPPED, RunState.FAILED, RunState.UNDOING)


class Undo:
    """Undoes runs of one job.

    Args:
        url: Postgres, for the lock.
        pool: Connections to Postgres.
        job: The job of the runs.
        window: Time after the end of a run in which it can be undone.
    """

    def __init__(self, url: str, pool: Pool, job: Job[Any], *, window: timedelta) -> None:
        self._url = url
        self._pool = pool
        self._runs = JobRuns(pool)
        self._job = job
        self._window = window

    async def undo(self, id_: UUID, now: datetime, tenant: str | None = None) -> RunCounts:
        """Undo a run, or resume its interrupted undo.

        Returns:
            ``seen``: rows that the run had changed; ``changed``: rows with their old values again. Others have been
            changed since, and stay.

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
            undone = await self._undo_or_record_failure(run)
            await self._runs.finish(id_, RunState.UNDONE, undone=undone)
        return undone

    async def _undo_or_record_failure(self, run: Run) -> RunCounts:
        try:
            return await self._undo_pages(run)
        except Unavailable:
            raise  # The run stays UNDOING: its undo goes on from there.
        except Conflict as error:
            await self._runs.refuse(run.id, RunState.STOPPED if run.held else RunState.DONE, f"undo: {error}")
            raise
        except Exception as error:
            await self._runs.finish(run.id, RunState.FAILED, f"undo: {error_line(error)}")
            raise

    async def _undo_pages(self, run: Run) -> RunCounts:
        undone = RunCounts()
        for relation in RELATIONS:
            while (page := await self._undo_page(run, relation)).seen:
                undone += page
        if isinstance(job := self._job, Undoes):
            while (page := await in_transaction(self._pool, lambda connection: job.undo(connection, run.id))).seen:
                undone += page
        return undone

    async def _undo_page(self, run: Run, relation: Relation) -> RunCounts:
        async def act(connection: Connection) -> RunCounts:
            changes = await take_undone(connection, run.id, relation, PAGE)
            writer = RowWriter(connection, None, run.order.moment)
            changed = await writer.change(relation, changes)
            await writer.finish()
            return RunCounts(seen=len(changes), changed=len(changed))

        # An equal note may be written while a deleted one comes back; the next try sees it and leaves that one deleted.
        is_equal = retry_if_exception_type(psycopg.errors.UniqueViolation)
        retrying = AsyncRetrying(retry=is_equal, stop=stop_after_attempt(TRIES), reraise=True)
        return await retrying(in_transaction, self._pool, act)


async def request_undo(runs: JobRuns, id_: UUID, now: datetime, window: timedelta, tenant: str | None = None) -> None:
    """Queue the undo of a run.

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
    if run.order.job in NOT_UNDONE:
        raise Conflict(f"run {run.id} was one of {run.order.job}, which cannot be undone")
    if run.state not in _ENDED:
        raise Conflict(f"run {run.id} is {run.state}; only what has ended is undone, and once")
    if run.state is not RunState.UNDOING and run.finished_at is not None and now - run.finished_at > window:
        raise Conflict(f"run {run.id} ended {now - run.finished_at} ago; a run can be undone for {window}")
