"""Take feedback on memories: votes, which weigh in rankings, decay and procedures, and pins."""

from collections.abc import Awaitable, Callable
from uuid import UUID

from lamina.core.feedback import Feedback, Vote
from lamina.core.ports import Clock
from lamina.core.scope import Scope
from lamina.errors import NotFound
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.feedback import FeedbackTable, hold_memory, put_vote, set_pin
from lamina.stores.postgres.note_temperature import warm_up
from lamina.stores.postgres.outbox import enqueue_notes
from lamina.stores.postgres.owners import OwnedKind, Owners
from lamina.stores.postgres.procedures import weigh_votes


class FeedbackRecorder:
    """Writes feedback on memories of any tier.

    Args:
        pool: Connections to Postgres.
        clock: The time of day.
    """

    def __init__(self, pool: Pool, *, clock: Clock) -> None:
        self._pool = pool
        self._owners = Owners(pool)
        self._table = FeedbackTable(pool)
        self._clock = clock

    async def get(self, tenant: str, id_: UUID, voter: str) -> Feedback:
        """Return the feedback on a memory, with a principal's own vote.

        Raises:
            NotFound: If the tenant has no such memory.
        """
        if id_ not in await self._owners.find(tenant, OwnedKind.MEMORY, [id_]):
            raise NotFound(OwnedKind.MEMORY.value, str(id_))
        return await self._table.get(tenant, id_, voter)

    async def vote(self, tenant: str, id_: UUID, voter: str, vote: Vote | None) -> Feedback:
        """Set the one vote that a principal has on a memory, or take it back.

        Raises:
            NotFound: If the tenant has no such memory.
        """

        async def write(connection: Connection, place: Scope) -> None:
            await put_vote(connection, place, id_, voter, vote, self._clock())
            await weigh_votes(connection, tenant, id_)

        return await self._write(tenant, id_, voter, write)

    async def pin(self, tenant: str, id_: UUID, voter: str, *, is_pinned: bool) -> Feedback:
        """Pin a memory, so that it never fades, or no longer.

        Raises:
            NotFound: If the tenant has no such memory.
        """

        async def write(connection: Connection, place: Scope) -> None:
            await set_pin(connection, place, id_, self._clock() if is_pinned else None)
            if is_pinned and await warm_up(connection, [id_], self._clock()):
                await enqueue_notes(connection, [id_])

        return await self._write(tenant, id_, voter, write)

    async def _write(
        self, tenant: str, id_: UUID, voter: str, write: Callable[[Connection, Scope], Awaitable[None]]
    ) -> Feedback:
        async def act(connection: Connection) -> None:
            # Held, so that no erasure or merge goes by between the look and the write.
            place = await hold_memory(connection, tenant, id_)
            await write(connection, place)
            await bump_epoch(connection, place)

        await in_transaction(self._pool, act)
        return await self._table.get(tenant, id_, voter)
