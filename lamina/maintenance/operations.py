"""Operations over many memories, worked on by whichever process is free, and followed by their ids."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol
from uuid import UUID

from pydantic import TypeAdapter

from lamina.aio.cancelling import cancel_all
from lamina.aio.repeating import repeat
from lamina.core.operations import Operation, OperationKind
from lamina.core.ports import Clock
from lamina.errors import Conflict, LaminaError, NotFound, describe_error
from lamina.ingest.write_once import write_once
from lamina.stores.postgres.connection import Connection, Pool
from lamina.stores.postgres.idempotency import Once
from lamina.stores.postgres.operations import OperationTable, order_operation
from lamina.stores.postgres.renaming import refuse_while_renamed

logger = logging.getLogger(__name__)
WAIT_S = 5.0
"""Longest time for which an order waits for the end."""
LOOK_S = 5.0
REREAD_S = 0.2
"""Time after which an operation is read again at which another process works."""
_ORDERED = TypeAdapter(dict[str, UUID])


class Worker(Protocol):
    """Works on operations of some kinds."""

    async def step(self, operation: Operation) -> None:
        """Work on the next batch, or complete the operation, in one transaction that holds its row.

        Raises:
            LaminaError: If that cannot be done now; it is tried again.
        """
        ...


class Operations:
    """Orders operations and brings them to their end.

    A process claims an operation for one step, and the step moves the cursor: what is interrupted goes on where it was,
    in any process, and two processes at one operation do nothing twice. Operations take turns step by step.

    Args:
        pool: Connections to Postgres.
        workers: By the kinds that they work on.
        clock: The time of day.

    Attributes:
        table: Reads the operations.
    """

    def __init__(self, pool: Pool, workers: Mapping[OperationKind, Worker], *, clock: Clock) -> None:
        self._pool = pool
        self.table = OperationTable(pool)
        self._workers = workers
        self._clock = clock
        self._runs: dict[UUID, asyncio.Task[None]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def order(
        self,
        kind: OperationKind,
        ids: Mapping[str, str | None],
        request: Mapping[str, Any],
        once: Once | None = None,
        *,
        begin: Callable[[Connection, UUID], Awaitable[None]] | None = None,
    ) -> Operation:
        """Order an operation over the memories of some ids; return it at its end, or as it stands when that is far.

        Args:
            kind: What it does.
            ids: Of the memories.
            request: What is ordered beside.
            once: The key of the request, if it has one.
            begin: Prepares it, or refuses it, in the transaction of the order; its argument is the operation's id.

        Raises:
            Unavailable: If the workspace is being renamed, or Postgres does not answer: one that was ordered by then
                goes on.
        """

        async def write(connection: Connection) -> dict[str, UUID]:
            id_ = await order_operation(connection, kind, ids, request, self._clock())
            if begin is not None:
                await begin(connection, id_)
            if kind is not OperationKind.RENAME_SCOPE:
                places = {"tenant": ids["tenant"], "workspace": ids["workspace"]}
                await refuse_while_renamed(connection, {**places, "to_workspace": request.get("to_workspace")})
            return {"operation": id_}

        ordered = await write_once(self._pool, once, _ORDERED, write)
        tenant = str(ids["tenant"])
        operation = await self.table.get(tenant, ordered["operation"])
        if not operation.is_complete:
            await asyncio.wait([self._run(operation)], timeout=WAIT_S)
        return await self.table.get(tenant, operation.id)

    async def work(self) -> None:
        """Bring all open operations as far as they go, a step of each in turn.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        while waiting := [one for one in await self.table.open() if one.id not in self._runs]:
            if not any([await self._step(operation) for operation in waiting]):
                return

    def start(self) -> None:
        """Work on open operations from now on, by whomever they were ordered; in the event loop, once."""
        if self._looking is None:
            self._looking = asyncio.create_task(repeat(self.work, "operations: retrying", every_s=LOOK_S))

    async def close(self) -> None:
        """Stop; the next process goes on."""
        await cancel_all([*self._runs.values(), *([] if self._looking is None else [self._looking])])

    def _run(self, operation: Operation) -> asyncio.Task[None]:
        """Return the task that works on an operation in this process."""
        if operation.id not in self._runs:
            task = self._runs[operation.id] = asyncio.create_task(self._work_on(operation))
            task.add_done_callback(lambda _: self._runs.pop(operation.id, None))
        return self._runs[operation.id]

    async def _work_on(self, operation: Operation) -> None:
        """Bring an operation to its end, or as far as it goes."""
        try:
            while not operation.is_complete and operation.waits_for is None:
                if not await self._step(operation):
                    await asyncio.sleep(REREAD_S)
                operation = await self.table.get(operation.tenant, operation.id)
        except NotFound:
            return  # Its user was erased.
        except Exception as error:  # noqa: BLE001 - whoever looks for open ones goes on with it
            logger.warning("operation %s: %s", operation.id, _reason(error))

    async def _step(self, operation: Operation) -> bool:
        """Take a step; report whether there was one to take, and it did not fail."""
        try:
            if not await self.table.claim(operation):
                return False
            await self._workers[operation.kind].step(operation)
        except Exception as error:  # noqa: BLE001 - it is tried again
            logger.warning("operation %s: retrying: %s", operation.id, _reason(error))
            # The name of a session that was taken stays so, and a session is renamed whole or not at all.
            is_last = isinstance(error, Conflict) and operation.kind is OperationKind.RENAME_SCOPE
            await self._record_wait(operation.id, _reason(error), is_last=is_last)
            return False
        return True

    async def _record_wait(self, id_: UUID, reason: str, *, is_last: bool) -> None:
        try:
            await self.table.record_wait(id_, reason, is_last=is_last)
        except Exception as error:  # noqa: BLE001 - it says the same as the log
            logger.warning("operation %s: %s", id_, _reason(error))


def _reason(error: Exception) -> str:
    """Return the text of an error of ours, and of another one the type alone: Postgres puts rows into its texts."""
    return describe_error(error) if isinstance(error, LaminaError | TimeoutError) else type(error).__name__
