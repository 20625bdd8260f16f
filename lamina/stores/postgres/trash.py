"""The trash: deleted memories that can be brought back."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Json, Jsonb

from lamina.core.memories import Note
from lamina.core.paging import Page
from lamina.core.scope import Scope
from lamina.core.trash import Discarded, TrashKind
from lamina.errors import Conflict, NotFound
from lamina.stores.postgres.connection import Connection, scope_parameters
from lamina.stores.postgres.entities import read_told
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("trash.sql")

_DISCARD = {
    TrashKind.NOTE: QUERIES["discard_note"],
    TrashKind.MESSAGE: QUERIES["discard_message"],
    TrashKind.PROCEDURE: QUERIES["discard_procedure"],
    TrashKind.DOCUMENT: QUERIES["discard_document"],
}
TITLE_CHARS = 120
# In the order in which rows refer to one another.
_TABLES = ("messages", "message_chunks", "compacted_chunks", "documents", "passages", "passage_chunks")


@dataclass(frozen=True, slots=True)
class TrashPolicy:
    """How long a deleted memory can be brought back; no time is never."""

    kept: timedelta

    @property
    def keeps(self) -> bool:
        """Whether a deleted memory is kept at all."""
        return self.kept > timedelta()

    def cutoff(self, now: datetime) -> datetime:
        """Return the time from which on deletions can be undone."""
        return now - self.kept


async def discard(
    connection: Connection,
    policy: TrashPolicy,
    kind: TrashKind,
    tenant: str,
    id_: UUID,
    now: datetime,
    *,
    operation: UUID | None = None,
) -> None:
    """Put a memory into the trash if it keeps any, in the transaction that deletes it.

    Its rows must be there still, and what it says of the graph.

    Args:
        connection: In that transaction.
        policy: Whether it keeps any.
        kind: Of the memory.
        tenant: Whose memory.
        id_: Its id.
        now: The present time.
        operation: The deletion of a scope that takes it, by whose undo it comes back.
    """
    if policy.keeps:
        leaving = await connection.execute(QUERIES["list_to_discard"], {"id": id_})
        told = await read_told(connection, [one["id"] async for one in leaving])
        row = {"tenant": tenant, "id": id_, "now": now, "operation_id": operation, "title_chars": TITLE_CHARS}
        await connection.execute(_DISCARD[kind], {**row, **{name: Json(rows) for name, rows in told.items()}})


async def take(connection: Connection, tenant: str, id_: UUID) -> None:
    """Take an entry out of the trash; of two that restore it at a time, the second finds none.

    Raises:
        NotFound: If it is not there.
    """
    cursor = await connection.execute(QUERIES["take_trash"], {"tenant": tenant, "id": id_})
    if cursor.rowcount == 0:
        raise NotFound("deleted memory", str(id_))


async def find_discarded(
    connection: Connection, scope: Scope, kind: TrashKind, hashes: Sequence[bytes], cutoff: datetime
) -> dict[bytes, UUID]:
    """Return the deleted memories of exactly this scope with one of these texts, by the hash of the text."""
    parameters = {**scope_parameters(scope), "kind": kind, "hashes": list(hashes), "cutoff": cutoff}
    cursor = await connection.execute(QUERIES["find_discarded"], parameters)
    return {bytes(row["content_hash"]): row["id"] async for row in cursor}


async def discarded_notes(connection: Connection, tenant: str, id_: UUID) -> list[DictRow]:
    """Return a deleted note with those that were made from it and deleted with it."""
    cursor = await connection.execute(QUERIES["find_discarded_notes"], {"tenant": tenant, "id": id_})
    return await cursor.fetchall()


async def revive_notes(connection: Connection, tenant: str, ids: Sequence[UUID], now: datetime) -> list[UUID]:
    """Make deleted notes live again, but for those whose text their scope has again; return those that are."""
    cursor = await connection.execute(QUERIES["revive_notes"], {"tenant": tenant, "ids": list(ids), "now": now})
    return [row["id"] async for row in cursor]


async def postpone_notes(connection: Connection, tenant: str, ids: Sequence[UUID]) -> set[UUID]:
    """Keep those of the notes deleted that would come back together, but have another deleted source; return them.

    They come back with the last of their sources.
    """
    parameters = {"tenant": tenant, "ids": list(ids)}
    await connection.execute(QUERIES["lock_with_sources"], parameters)
    return {row["id"] async for row in await connection.execute(QUERIES["postpone_notes"], parameters)}


async def hand_on_told(connection: Connection, tenant: str, entry: Discarded, waiting: Collection[UUID]) -> None:
    """Move the evidence of waiting notes to the trash entries of the sources that they wait for, if their user's.

    Args:
        connection: Inside the transaction that takes the entry.
        tenant: Whose notes.
        entry: With what they say.
        waiting: The notes.
    """
    evidence = [one for one in entry.rows.get("evidence", ()) if UUID(one["memory"]) in waiting]
    told = {"evidence": Json(evidence), "entities": Json(entry.rows.get("entities", []))}
    notes = {"tenant": tenant, "user_id": entry.user, "ids": sorted(waiting)}
    await connection.execute(QUERIES["hand_on_told"], {**notes, **told})


async def rewrite_notes(connection: Connection, tenant: str, written: Mapping[UUID, Note]) -> None:
    """Let notes that came back, since they are written again, expire and have speakers as is written now.

    Their sources are forgotten.
    """
    parameters = {
        "tenant": tenant,
        "ids": list(written),
        "expiries": [note.expires_at for note in written.values()],
        "speakers": [Jsonb(list(note.named_speakers())) for note in written.values()],
    }
    await connection.execute(QUERIES["rewrite_notes"], parameters)


async def revive_procedure(connection: Connection, tenant: str, id_: UUID) -> None:
    """Make a deleted procedure live again.

    Raises:
        Conflict: If the scope has an equal one.
        NotFound: If it was erased meanwhile.
    """
    try:
        cursor = await connection.execute(QUERIES["revive_procedure"], {"tenant": tenant, "id": id_})
    except psycopg.errors.UniqueViolation as error:
        raise Conflict("the scope has an equal procedure again; change or delete that one") from error
    if cursor.rowcount == 0:
        raise NotFound("deleted memory", str(id_))


async def revive_rows(connection: Connection, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Insert the rows of a message or a document again.

    Raises:
        Conflict: If the scope has the same again.
    """
    try:
        if rows.get("messages"):
            await connection.execute(QUERIES["revive_session"], {"rows": Json(rows["messages"])})
        for table in _TABLES:
            if rows.get(table):
                await connection.execute(QUERIES["revive_rows"], {"relation": table, "rows": Json(rows[table])})
        await revive_compacted(connection, [UUID(message["id"]) for message in rows.get("messages", ())])
    except psycopg.errors.UniqueViolation as error:
        raise Conflict("the scope has the same again; change or delete that one") from error


async def revive_compacted(connection: Connection, ids: Sequence[UUID]) -> list[UUID]:
    """Let those of some messages whose summary is gone stand for themselves again; return these."""
    cursor = await connection.execute(QUERIES["revive_compacted"], {"ids": list(ids)})
    return [row["id"] async for row in cursor]


async def erase_from_trash(connection: Connection, tenant: str, ids: Sequence[UUID]) -> None:
    """Take erased memories out of the trash."""
    await connection.execute(QUERIES["erase_from_trash"], {"tenant": tenant, "ids": list(ids)})


async def erase_user_trash(connection: Connection, tenant: str, user: str) -> int:
    """Erase a user's memories in the trash; count them."""
    return (await connection.execute(QUERIES["erase_user_trash"], {"tenant": tenant, "user_id": user})).rowcount


class Trash(PostgresStore):
    """Reads the trash."""

    async def page(self, scope: Scope, kind: TrashKind | None, page: Page, *, cutoff: datetime) -> list[Discarded]:
        """Return the memories, of a kind or of all, that were deleted in a scope since the cutoff, the last first."""
        parameters = {**scope_parameters(scope), "kind": kind, "cutoff": cutoff, **page.parameters("time", "id")}
        return [_discarded(row) for row in await self._rows(QUERIES["list_trash"], **parameters)]

    async def get(self, tenant: str, id_: UUID, *, cutoff: datetime) -> Discarded:
        """Return a deleted memory.

        Raises:
            NotFound: If it does not lie in the tenant's trash.
        """
        row = await self._row(QUERIES["find_trash"], tenant=tenant, id=id_, cutoff=cutoff)
        if row is None:
            raise NotFound("deleted memory", str(id_))
        return _discarded(row)


def _discarded(row: DictRow) -> Discarded:
    # Its rows say where they were when it was deleted; the place may have been renamed since.
    place = {"workspace": row["workspace"], "namespace": row["namespace"]}
    rows = row.get("rows") or {}
    return Discarded(
        id=row["id"],
        kind=TrashKind(row["kind"]),
        title=row["title"],
        workspace=row["workspace"],
        namespace=row["namespace"],
        user=row["user_id"],
        agent=row["agent_id"],
        deleted_at=row["deleted_at"],
        rows={table: [{**one, **place} for one in found] for table, found in rows.items()},
    )
