"""Erasures of users, from the order to the signed receipt, by whichever process is free."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from lamina.aio.cancelling import cancel_all
from lamina.aio.repeating import repeat
from lamina.core.erasures import Erasure, ErasureState, Remnant, hash_user, receipt_fields
from lamina.core.ports import Clock
from lamina.core.tiers import ProjectionName
from lamina.errors import LaminaError, describe_error
from lamina.ingest.erasure import Eraser
from lamina.projections.audit import Audit, Drift
from lamina.stores.postgres.erasures import ErasureTable, erasure_lock
from lamina.stores.postgres.outbox import Outbox
from lamina.text.hygiene import clean_id

logger = logging.getLogger(__name__)
# Most of the time the changes of a moment ago are applied within this.
APPLY_WAIT_S = 3.0
STEP_S = 0.05
BETWEEN_PASSES_S = 0.5
LOOK_S = 5.0
Compaction = Callable[[str], Awaitable[Sequence[Remnant]]]
"""Rewrites a tenant's part of a projection without its deleted entries; returns where some may remain."""
Seal = Callable[[Mapping[str, Any]], Awaitable[tuple[Mapping[str, Any], str, str]]]
"""Signs a receipt; its second value is the id of the key, the third one its public half, in PEM."""


@dataclass(frozen=True, slots=True)
class ErasedPlaces:
    """Everything outside of Postgres' rows that an erasure reaches.

    Args:
        audits: Compare a tenant's part of each projection with Postgres.
        compactions: Write a tenant's part of each projection anew, without what was deleted from it.
        forget: Empties the caches of a tenant.
        rewrite: Writes the tables of Postgres anew, without what was deleted from them.
        leftovers: Removes or names stores that no projection is kept in any more.
        cached_for: How long routers may keep copies of answers in memory, which they send to nobody.
    """

    audits: Mapping[ProjectionName, Audit]
    compactions: Mapping[ProjectionName, Compaction]
    forget: Callable[[str], Awaitable[None]]
    rewrite: Callable[[], Awaitable[Sequence[Remnant]]]
    leftovers: Callable[[], Awaitable[Sequence[Remnant]]]
    cached_for: timedelta


@dataclass(frozen=True, slots=True)
class Look:
    """Findings of a look for everything of a user.

    Args:
        left: Rows of the user, by kind.
        audited: Memories that a projection holds and Postgres does not, or in another state, by projection.
        waits_for: Reasons to look again, in words.
    """

    left: Mapping[str, int]
    audited: Mapping[str, int]
    waits_for: tuple[str, ...]


class Erasures:
    """Orders erasures and brings them to their end.

    One process of all works on them at a time, for all: the files of a store are written anew once for every erasure
    that waits for it. What is interrupted is repeated by the next process; every step may be.

    Args:
        url: Postgres, for the lock.
        table: The erasures.
        outbox: Has projections repaired.
        eraser: Erases rows.
        places: Everything beside the rows.
        seal: Signs a receipt.
        clock: The time of day.
        wait_s: Longest time for which an order waits for its end.
    """

    def __init__(
        self,
        url: str,
        table: ErasureTable,
        outbox: Outbox,
        eraser: Eraser,
        places: ErasedPlaces,
        seal: Seal,
        *,
        clock: Clock,
        wait_s: float,
    ) -> None:
        self._url = url
        self.table = table
        self._outbox = outbox
        self._eraser = eraser
        self._places = places
        self._seal = seal
        self._clock = clock
        self._wait_s = wait_s
        self._working: asyncio.Task[None] | None = None
        self._passes: set[asyncio.Task[None]] = set()

    async def order(self, tenant: str, user: str) -> Erasure:
        """Erase a user; return the erasure when it is complete, or as it stands when that takes long or is held up.

        Raises:
            InvalidInput: If the user is no id.
            Unavailable: If Postgres does not answer; an erasure that was ordered by then goes on.
        """
        erasure = await self.table.order(tenant, clean_id(user, "user"), self._clock())
        deadline = time.monotonic() + self._wait_s
        held_up_by: tuple[str, ...] = ()
        while True:
            await self._work_until(deadline)
            erasure = await self.table.get(tenant, erasure.id)
            is_held_up = bool(erasure.waits_for) and erasure.waits_for == held_up_by
            if erasure.is_complete or is_held_up or time.monotonic() > deadline:
                return erasure
            held_up_by = erasure.waits_for
            await asyncio.sleep(BETWEEN_PASSES_S)

    def start(self) -> None:
        """Work on open erasures from now on, whoever ordered them; in the event loop, once."""
        if self._working is None:
            self._working = asyncio.create_task(repeat(self.work, "erasures: retrying", every_s=LOOK_S))

    async def close(self) -> None:
        """Stop; the next process goes on."""
        await cancel_all([*self._passes, *([] if self._working is None else [self._working])])

    async def work(self) -> None:
        """Bring all open erasures as far as they go, unless another process is at it.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        if not await self.table.open():
            return
        async with erasure_lock(self._url) as is_ours:
            if not is_ours:
                return
            for erasure in await self.table.open():
                if erasure.state is ErasureState.ERASING and erasure.user is not None:
                    await self._empty(erasure, erasure.user)
            if emptied := [found for found in await self.table.open() if found.state is ErasureState.REWRITING]:
                await self._rewrite(emptied)

    async def _work_until(self, deadline: float) -> None:
        """Work on open erasures; after the deadline, or once the caller is gone, without anybody who waits.

        A pass works on the erasures of all tenants, and writes whole stores anew.
        """
        task = asyncio.create_task(self.work())
        self._passes.add(task)
        task.add_done_callback(self._end_pass)
        done, _ = await asyncio.wait({task}, timeout=max(0.0, deadline - time.monotonic()))
        for ended in done:
            ended.result()

    def _end_pass(self, task: asyncio.Task[None]) -> None:
        self._passes.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("erasures: retrying: %s", describe_error(error))

    async def _empty(self, erasure: Erasure, user: str) -> None:
        """Erase the rows of a user, and look for all that is left."""
        try:
            await self._eraser.erase(
                erasure.tenant, user, self._clock(), lambda erased: self.table.add_erased(erasure.id, erased)
            )
            look = await self._look(erasure.tenant, user)
        except Exception as error:  # noqa: BLE001 - the others go on
            await self._hold([erasure], error)
            return
        if look.waits_for:
            await self.table.record_look(erasure.id, look.left, look.audited, look.waits_for)
        else:
            await self.table.mark_emptied(erasure.id, look.left, look.audited, self._clock())

    async def _look(self, tenant: str, user: str) -> Look:
        waits_for = await self._unapplied()
        await self._places.forget(tenant)
        audited: dict[str, int] = {}
        for name, audit in self._places.audits.items() if not waits_for else ():
            try:
                audited[name] = await self._repair(name, tenant, await audit(tenant))
            except LaminaError as error:
                waits_for.append(f"{name}: {error}")
        # Last, so that a row that is written meanwhile is found.
        left = await self._eraser.count(tenant, user)
        waits_for += [
            f"{name}: {count} memories in it are not as in Postgres" for name, count in audited.items() if count
        ]
        waits_for += [f"{count} {name} of the user are there, again or still" for name, count in left.items() if count]
        return Look(left, audited, tuple(waits_for))

    async def _unapplied(self) -> list[str]:
        """Wait a while for every projection to apply the changes of before; return those that have not."""
        until = await self.table.last_change()
        deadline = time.monotonic() + APPLY_WAIT_S
        waiting = await self.table.unapplied(until, tuple(self._places.audits))
        while waiting and time.monotonic() < deadline:
            await asyncio.sleep(STEP_S)
            waiting = await self.table.unapplied(until, tuple(self._places.audits))
        return [f"{name}: {count} changes are not applied yet" for name, count in waiting.items()]

    async def _repair(self, projection: ProjectionName, tenant: str, drift: Drift) -> int:
        """Have a projection take over the memories that differ and are not on their way; return their number."""
        differing = [*drift.surplus, *drift.different]
        waiting = await self.table.waiting(projection, differing) if differing else set()
        lost = [id_ for id_ in differing if id_ not in waiting]
        await self._outbox.enqueue(projection, tenant, lost)
        return len(lost)

    async def _rewrite(self, erasures: Sequence[Erasure]) -> None:
        """Rewrite the files of all stores and sign the receipts; a failure of one tenant delays its own alone."""
        compacted: list[tuple[Erasure, list[Remnant]]] = []
        for tenant in sorted({erasure.tenant for erasure in erasures}):
            own = [erasure for erasure in erasures if erasure.tenant == tenant]
            try:
                # Once more: replicas write a moment after a question was asked.
                await self._places.forget(tenant)
                left = [remnant for compact in self._places.compactions.values() for remnant in await compact(tenant)]
            except Exception as error:  # noqa: BLE001 - the others go on
                await self._hold(own, error)
            else:
                compacted += [(erasure, left) for erasure in own]
        if not compacted:
            return
        try:
            shared = [*await self._places.rewrite(), *await self._places.leftovers()]
            for erasure, left in compacted:
                cached = replace(CACHED, until=self._clock() + self._places.cached_for)
                await self._complete(erasure, [*dict.fromkeys([*left, *shared]), cached, *BY_NATURE])
        except Exception as error:  # noqa: BLE001 - it is tried again
            await self._hold([erasure for erasure, _ in compacted], error)

    async def _hold(self, erasures: Sequence[Erasure], error: Exception) -> None:
        if not isinstance(error, LaminaError):
            logger.warning("erasures: retrying", exc_info=error)
        await self.table.record_wait([erasure.id for erasure in erasures], [describe_error(error)])

    async def _complete(self, erasure: Erasure, remnants: Sequence[Remnant]) -> None:
        now = self._clock()
        bound = await self.table.bound_users(erasure.tenant)
        if any(hash_user(erasure.user_salt, name) == erasure.user_hash for name in bound):
            remnants = [*remnants, BOUND]
        receipt, key_id, pem = await self._seal(receipt_fields(erasure, tuple(remnants), now))
        # First the key: a receipt that nobody can check is none.
        await self.table.put_key(key_id, pem)
        await self.table.complete(erasure.id, receipt, now)


CACHED = Remnant(
    "memory of the routers", "copies of answers, which are sent to nobody any more", "when their time is over"
)
BOUND = Remnant(
    "postgres: api_keys", "the name of the user, to whom keys are bound", "when they are revoked and it is erased again"
)
BY_NATURE = (
    Remnant(
        "postgres/pg_wal/*",
        "changes of rows, in the write-ahead log",
        "when Postgres has written over its segments: after max_wal_size (1 GB) of further changes at the latest",
    ),
    Remnant("backups", "everything that was there when they were made", "when you delete them"),
    Remnant(
        "earlier versions of the archive's files",
        "archived notes",
        "when an object store that keeps versions, or a backup, deletes them",
    ),
)
