"""Erase a user: all rows that are theirs, from every table and thereby from every index, for good."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from psycopg.rows import DictRow

from lamina.core.scope import Scope
from lamina.core.tiers import ProjectionName
from lamina.ingest.memory_linking import MemoryLinker
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.erasure import (
    count_user_rows,
    delete_empty_sessions,
    delete_user_rows,
    erase_notes,
    lock_derived_notes,
    lock_user_notes,
)
from lamina.stores.postgres.events import erase_memory_ids
from lamina.stores.postgres.feedback import erase_feedback
from lamina.stores.postgres.links import prune_evidence
from lamina.stores.postgres.notes import delete_notes
from lamina.stores.postgres.outbox import (
    enqueue,
    enqueue_entries,
    enqueue_returned,
    note_entries,
    outbox_entries,
)
from lamina.stores.postgres.tiers import ERASED
from lamina.stores.postgres.trash import erase_from_trash

PAGE = 1_000
# Erases the data of a tenant's user outside of these tables, and returns the number of erased items.
EraseElsewhere = Callable[[str, str], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class _Owner:
    """A user who is erased.

    Args:
        now: The time of the erasure.
    """

    tenant: str
    user: str
    now: datetime


Step = Callable[[Connection, _Owner], Awaitable[Sequence[DictRow]]]


class Eraser:
    """Erases the rows of users.

    Pages of a thousand rows are erased in transactions of their own, so that no other write waits for a large erasure.
    An erasure that is interrupted may be repeated.

    Args:
        pool: Connections to Postgres.
        linker: Removes the links of memories.
        elsewhere: Erase the user's data outside of these tables, by name: the archive, the responses.
    """

    def __init__(self, pool: Pool, linker: MemoryLinker, elsewhere: Mapping[str, EraseElsewhere]) -> None:
        self._pool = pool
        self._linker = linker
        self._elsewhere = elsewhere

    async def erase(
        self, tenant: str, user: str, now: datetime, report: Callable[[Mapping[str, int]], Awaitable[None]]
    ) -> None:
        """Erase everything that belongs to the user in all workspaces, and the notes that were made from it.

        Args:
            tenant: Tenant of the user.
            user: The user.
            now: The time of the erasure.
            report: Takes the number of erased rows of each kind, when these are erased.

        Raises:
            Unavailable: If Postgres does not answer; the pages that were erased by then stay erased.
        """
        owner = _Owner(tenant, user, now)
        steps: Mapping[str, Step] = {
            "notes": self._notes,
            **{kind: partial(self._rows, kind, projection=rows.projection) for kind, rows in ERASED.items()},
            "profiles": partial(self._rows, "profiles"),
            "statements": self._statements,
            "sessions": lambda connection, owner: delete_empty_sessions(connection, owner.tenant, limit=PAGE),
        }
        for name, step in steps.items():
            await report({name: await self._all(step, owner)})
        for name, erase in self._elsewhere.items():
            await report({name: await erase(tenant, user)})

    async def count(self, tenant: str, user: str) -> Mapping[str, int]:
        """Return how many rows there are of a user, by kind.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return await count_user_rows(self._pool, tenant, user)

    async def _all(self, step: Step, owner: _Owner) -> int:
        async def act(connection: Connection) -> int:
            rows = await step(connection, owner)
            places = {(row["workspace"], row["namespace"]) for row in rows}
            # A profile of the whole tenant lies in no place; its absence is part of every stamp.
            for workspace, namespace in sorted(places - {("", "")}):
                await bump_epoch(connection, Scope(owner.tenant, workspace, namespace), teaches=True, erases=True)
            return len(rows)

        erased = 0
        while count := await in_transaction(self._pool, act):
            erased += count
        return erased

    async def _notes(self, connection: Connection, owner: _Owner) -> Sequence[DictRow]:
        rows = await lock_user_notes(connection, owner.tenant, owner.user, limit=PAGE)
        ids = [row["id"] for row in rows]
        deletion = await delete_notes(connection, owner.tenant, ids, owner.now)
        made = await lock_derived_notes(connection, owner.tenant, ids)
        erased = [row["id"] for row in (*rows, *made)]
        everything = sorted({*erased, *deletion.deleted})
        nodes = await self._linker.forget(connection, everything)
        await enqueue_returned(connection, deletion.restored)
        entries = [*note_entries([*everything, *deletion.restored]), *outbox_entries("graph", nodes)]
        await enqueue_entries(connection, entries)
        await erase_notes(connection, owner.tenant, erased)
        # Also from events of others, who made notes from the user's; the user's own lose all ids with the name.
        await erase_memory_ids(connection, owner.tenant, erased)
        await erase_from_trash(connection, owner.tenant, erased)
        await erase_feedback(connection, owner.tenant, erased)
        return [*rows, *made]

    async def _rows(
        self, kind: str, connection: Connection, owner: _Owner, projection: ProjectionName | None = None
    ) -> Sequence[DictRow]:
        rows = await delete_user_rows(connection, kind, owner.tenant, owner.user, limit=PAGE)
        if kind in ERASED:
            erased = [row["id"] for row in rows]
            await erase_memory_ids(connection, owner.tenant, erased)
            # Also a procedure that the user's runs taught, which lies there as nobody's.
            await erase_from_trash(connection, owner.tenant, erased)
            await erase_feedback(connection, owner.tenant, erased)
        if projection is not None:
            ids = [row["id"] for row in rows]
            nodes = await self._linker.forget(connection, ids)
            await enqueue_entries(connection, [*outbox_entries(projection, ids), *outbox_entries("graph", nodes)])
        return rows

    async def _statements(self, connection: Connection, owner: _Owner) -> Sequence[DictRow]:
        rows = await delete_user_rows(connection, "statements", owner.tenant, owner.user, limit=PAGE)
        entities = {id_ for row in rows for id_ in (row["from_id"], row["to_id"])}
        await prune_evidence(connection, sorted(entities), sorted({row["edge_id"] for row in rows}))
        await enqueue(connection, "graph", sorted(entities))
        return rows
