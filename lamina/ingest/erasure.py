"""The erasure of a user: everything that is theirs, from every table and thereby from every index, for good."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.scope import Scope
from lamina.ingest.memory_linking import MemoryLinker
from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction, statement
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.links import prune_evidence
from lamina.stores.postgres.notes import delete_notes
from lamina.stores.postgres.outbox import (
    enqueue,
    enqueue_entries,
    enqueue_returned,
    note_entries,
    outbox_entries,
)
from lamina.text.hygiene import clean_id

PAGE = 1_000
Step = Callable[[Connection, dict[str, Any]], Awaitable[Sequence[DictRow]]]
EraseElsewhere = Callable[[str, str], Awaitable[int]]
"""Erases what a tenant's user has somewhere else than in these tables, and returns how much that was."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an erasure did.

    Args:
        erased: Rows that went, by what they were.
        left: What was found when everything was looked for again; all 0.
    """

    erased: Mapping[str, int]
    left: Mapping[str, int]

    @property
    def is_complete(self) -> bool:
        """Tell whether nothing was found again."""
        return not any(self.left.values())


class Eraser:
    """Erases users.

    Pages of a thousand rows go in transactions of their own, so that nobody waits for a large erasure; one that is
    interrupted is asked for again.

    Args:
        pool: Connections to Postgres.
        linker: Removes the links of memories.
        elsewhere: What else holds something of users, by name: the archive, the responses.
    """

    def __init__(self, pool: Pool, linker: MemoryLinker, elsewhere: Mapping[str, EraseElsewhere]) -> None:
        self._pool = pool
        self._linker = linker
        self._elsewhere = elsewhere

    async def erase(self, tenant: str, user: str, now: datetime) -> Receipt:
        """Erase everything that belongs to the user in all workspaces, and what was made from it.

        Raises:
            InvalidInput: If the user is no id.
            Unavailable: If Postgres does not answer; what was erased by then stays so.
        """
        whose: dict[str, Any] = {"tenant": tenant, "user_id": clean_id(user, "user"), "limit": PAGE, "now": now}
        steps: Mapping[str, Step] = {
            "notes": self._notes,
            "messages": self._messages,
            "passages": self._passages,
            "documents": self._plain("erase_user_documents"),
            "profiles": self._plain("erase_user_profiles"),
            "statements": self._statements,
        }
        erased = {name: await self._all(step, whose) for name, step in steps.items()}
        for name, erase in self._elsewhere.items():
            erased[name] = await erase(tenant, whose["user_id"])
        return Receipt(erased, await self._left(whose))

    async def _all(self, step: Step, whose: dict[str, Any]) -> int:
        async def act(connection: Connection) -> int:
            rows = await step(connection, whose)
            for workspace, namespace in sorted({(row["workspace"], row["namespace"]) for row in rows}):
                await bump_epoch(connection, Scope(whose["tenant"], workspace, namespace), teaches=True)
            return len(rows)

        erased = 0
        while count := await in_transaction(self._pool, act):
            erased += count
        return erased

    async def _notes(self, connection: Connection, whose: dict[str, Any]) -> Sequence[DictRow]:
        rows = await _rows(connection, "erase_user_notes", whose)
        ids = [row["id"] for row in rows]
        deletion = await delete_notes(connection, whose["tenant"], ids, whose["now"])
        made = await _rows(connection, "erase_derived_notes", {"ids": ids, "tenant": whose["tenant"]})
        erased = [row["id"] for row in (*rows, *made)]
        everything = sorted({*erased, *deletion.gone})
        nodes = await self._linker.forget(connection, everything)
        await enqueue_returned(connection, deletion.back)
        entries = [*note_entries([*everything, *deletion.back]), *outbox_entries("graph", nodes)]
        await enqueue_entries(connection, entries)
        await connection.execute(statement("erase_notes"), {"ids": erased, "tenant": whose["tenant"]})
        return [*rows, *made]

    async def _messages(self, connection: Connection, whose: dict[str, Any]) -> Sequence[DictRow]:
        rows = await _rows(connection, "erase_user_messages", whose)
        await self._leave(connection, "messages", [row["id"] for row in rows])
        return rows

    async def _passages(self, connection: Connection, whose: dict[str, Any]) -> Sequence[DictRow]:
        rows = await _rows(connection, "erase_user_passages", whose)
        await self._leave(connection, "documents", [row["id"] for row in rows])
        return rows

    async def _leave(self, connection: Connection, projection: Any, ids: Sequence[UUID]) -> None:
        nodes = await self._linker.forget(connection, ids)
        await enqueue_entries(connection, [*outbox_entries(projection, ids), *outbox_entries("graph", nodes)])

    async def _statements(self, connection: Connection, whose: dict[str, Any]) -> Sequence[DictRow]:
        rows = await _rows(connection, "erase_user_statements", whose)
        entities = {id_ for row in rows for id_ in (row["from_id"], row["to_id"])}
        await prune_evidence(connection, sorted(entities), sorted({row["edge_id"] for row in rows}))
        await enqueue(connection, "graph", sorted(entities))
        return rows

    def _plain(self, name: str) -> Step:
        return lambda connection, whose: _rows(connection, name, whose)

    async def _left(self, whose: dict[str, Any]) -> Mapping[str, int]:
        async with connect(self._pool) as connection:
            [row] = await _rows(connection, "user_left", whose)
        return {name: int(count) for name, count in row.items()}


async def _rows(connection: Connection, name: str, parameters: dict[str, Any]) -> Sequence[DictRow]:
    return await (await connection.execute(statement(name), parameters)).fetchall()
