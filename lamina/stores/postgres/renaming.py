"""Rows of a session, a namespace or a workspace get its new name, a page in a transaction."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Json

from lamina.errors import Conflict, Unavailable
from lamina.stores.postgres.connection import Connection, Pool, connect
from lamina.stores.postgres.epochs import RENAMING_RETRY_S
from lamina.stores.postgres.outbox import OutboxEntry, note_entries, outbox_entries
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.scope_contents import MOST_COUNTED

QUERIES = load_queries("renaming.sql")
Ids = Mapping[str, Any]
"""Ids of the scope as it is called and as it is to be, under the names of the statements' parameters."""


@dataclass(frozen=True, slots=True)
class RenamedPart:
    """Rows of a scope that are renamed together.

    Args:
        counted_as: Under which name the operation counts them; ``None`` if it does not.
        statement: Renames a page; where there are locks, the rows that these locked.
        entries: The entries of the rows in the outbox.
        locks: Lock a page, and then rows that belong to it. They are statements of their own, so that the one behind
            them sees also the vectors that a job wrote for these rows while they waited for it.
    """

    counted_as: str | None
    statement: bytes
    entries: Callable[[Iterable[UUID]], list[OutboxEntry]] | None = None
    locks: Sequence[bytes] = ()


def _of_table(statement: bytes, table: str) -> bytes:
    return statement.replace(b"/*table*/", table.encode())


def _with_graph(
    entries: Callable[[Iterable[UUID]], list[OutboxEntry]],
) -> Callable[[Iterable[UUID]], list[OutboxEntry]]:
    return lambda ids: [*entries(ids := list(ids)), *outbox_entries("graph", ids)]


PARTS: Sequence[RenamedPart] = (
    RenamedPart("notes", QUERIES["rename_notes"], _with_graph(note_entries), [QUERIES["lock_notes_to_rename"]]),
    RenamedPart(None, QUERIES["rename_deleted_notes"]),
    RenamedPart(
        "messages",
        QUERIES["rename_messages"],
        _with_graph(lambda ids: outbox_entries("messages", ids)),
        [_of_table(QUERIES["lock_rows_to_rename"], "messages")],
    ),
    RenamedPart(
        "documents",
        QUERIES["rename_documents"],
        _with_graph(lambda ids: outbox_entries("documents", ids)),
        [_of_table(QUERIES["lock_rows_to_rename"], "documents"), QUERIES["lock_passages_to_rename"]],
    ),
    RenamedPart("procedures", QUERIES["rename_procedures"], locks=[QUERIES["lock_procedures_to_rename"]]),
    RenamedPart(
        "entities",
        QUERIES["rename_entities"],
        lambda ids: outbox_entries("graph", ids),
        [_of_table(QUERIES["lock_rows_to_rename"], "entities")],
    ),
    RenamedPart("sessions", _of_table(QUERIES["rename_rows"], "sessions")),
    RenamedPart("profiles", _of_table(QUERIES["rename_rows"], "profiles")),
    RenamedPart(None, _of_table(QUERIES["rename_rows"], "profile_versions")),
    RenamedPart(None, _of_table(QUERIES["rename_rows"], "agent_turns")),
    RenamedPart("in_trash", _of_table(QUERIES["rename_rows"], "trash")),
    RenamedPart(None, _of_table(QUERIES["rename_rows"], "feedback")),
)


@dataclass(frozen=True, slots=True)
class RenamedPage:
    """A page that was renamed.

    Args:
        number: Of rows that count.
        namespaces: In which they lie now.
    """

    number: int
    namespaces: frozenset[str]
    entries: Sequence[OutboxEntry]


async def lock_renamings(connection: Connection, ids: Ids) -> None:
    """Have other orders of renamings of the tenant wait until the transaction ends."""
    await connection.execute(QUERIES["lock_renamings"], ids)


async def refuse_rivals(connection: Connection, ids: Ids, operation: UUID, halted: UUID | None) -> None:
    """Check that no other operation, beside the halted renaming that goes on, reaches one of the workspaces.

    Raises:
        Conflict: If one does.
    """
    parameters = {**ids, "operation": operation, "halted": halted}
    row = await (await connection.execute(QUERIES["find_renaming_rivals"], parameters)).fetchone()
    if row is not None and row["state"] == "running":
        raise Conflict(f"the operation {row['id']} works there; rename the scope when it is complete")
    if row is not None:
        raise Conflict(f"the renaming {row['id']} was given up halfway there; order it again, or undo it, first")


async def find_halted(connection: Connection, ids: Ids) -> UUID | None:
    """Return the renaming between the two, either way, that was given up halfway and neither went on nor back."""
    row = await (await connection.execute(QUERIES["find_halted_renaming"], ids)).fetchone()
    return None if row is None else UUID(str(row["id"]))


async def refuse_while_renamed(connection: Connection, ids: Ids) -> None:
    """Refuse an operation over memories of a workspace, or to one, in the transaction of its order.

    A renaming that is ordered afterwards sees it, and is refused.

    Raises:
        Unavailable: If a renaming touches the workspace: the memories would be looked for where they are no more.
    """
    await connection.execute(QUERIES["lock_renamings"], ids)
    row = await (await connection.execute(QUERIES["find_renaming_of"], ids)).fetchone()
    if row is not None:
        raise Unavailable("scope", f"it is being renamed by the operation {row['id']}", RENAMING_RETRY_S)


async def find_later(connection: Connection, ids: Ids, undone: UUID, undone_at: datetime, own: UUID) -> UUID | None:
    """Return a renaming that was ordered after one that is to be undone, and touched its names."""
    parameters = {**ids, "besides": [undone, own], "undone_at": undone_at}
    row = await (await connection.execute(QUERIES["find_later_renaming"], parameters)).fetchone()
    return None if row is None else UUID(str(row["id"]))


async def has_keys_that_gain(connection: Connection, ids: Ids, undone_at: datetime | None) -> bool:
    """Report whether keys are bound to the new name of a place and not to its old one.

    Args:
        connection: To Postgres.
        ids: The two names.
        undone_at: When the renaming was ordered that this one undoes: keys of before get back what they had.
    """
    row = await (await connection.execute(QUERIES["has_keys_that_gain"], {**ids, "undone_at": undone_at})).fetchone()
    return bool(row and row["has_some"])


async def find_contents(connection: Connection, ids: Ids) -> list[str]:
    """Return the kinds of things that there are in a session, a namespace or a workspace."""
    of_a_place = ids.get("session_id") is None
    query = QUERIES["find_contents_of_place"] if of_a_place else QUERIES["find_contents_of_session"]
    row = await (await connection.execute(query, ids)).fetchone()
    return [] if row is None else list(row["kinds"])


async def clear_place(connection: Connection, ids: Ids) -> None:
    """Take away the leftovers under the new name of a namespace or a workspace: nothing that anybody reads."""
    await connection.execute(QUERIES["drop_empty_sessions"], ids)
    await connection.execute(QUERIES["revoke_expired_shares"], ids)


async def has_archived_notes(connection: Connection, ids: Ids) -> bool:
    """Report whether notes of a scope lie in the archive, and its files alone say where."""
    of_a_place = ids.get("session_id") is None
    query = QUERIES["has_archived_notes"] if of_a_place else QUERIES["has_archived_notes_of_any_session"]
    row = await (await connection.execute(query, ids)).fetchone()
    return bool(row and row["has_some"])


async def count_besides(pool: Pool, ids: Ids) -> Mapping[str, int]:
    """Count everything beside the memories that a renaming of a namespace or a workspace touches."""
    async with connect(pool) as connection:
        cursor = await connection.execute(QUERIES["count_besides"], {**ids, "most": MOST_COUNTED})
        return dict(await cursor.fetchone() or {})


async def close_places(connection: Connection, ids: Ids, renaming: UUID) -> None:
    """Have writes in both places wait from the commit on, for as long as the renaming is open."""
    places = sorted([(ids["workspace"], ids["namespace"]), (ids["to_workspace"], ids["to_namespace"])], key=str)
    for workspace in sorted({workspace for workspace, _ in places}):
        await connection.execute(QUERIES["lock_workspace_alone"], {"tenant": ids["tenant"], "workspace": workspace})
    for workspace, namespace in places:
        place = {"tenant": ids["tenant"], "workspace": workspace, "namespace": namespace, "renaming": renaming}
        await connection.execute(QUERIES["close_place"], place)


async def keep_former_names(connection: Connection, ids: Ids) -> None:
    """Write down how each namespace of a renamed place was called, or whence its notes came.

    The ids of derived notes follow from that name: without it they would be made again.
    """
    await connection.execute(QUERIES["keep_former_names"], ids)


async def open_places(connection: Connection, ids: Ids, renaming: UUID) -> None:
    """Let writes through again."""
    await connection.execute(QUERIES["open_places"], {**ids, "renaming": renaming})


async def lock_page(connection: Connection, part: RenamedPart, ids: Ids, limit: int) -> list[UUID]:
    """Lock a page of a part's rows until the transaction ends; return their ids."""
    locked: list[UUID] = []
    for number, lock in enumerate(part.locks):
        cursor = await connection.execute(lock, {**ids, "limit": limit, "ids": locked})
        rows = await cursor.fetchall()
        if number == 0:
            locked = [row["id"] for row in rows]
    return locked


async def rename_page(connection: Connection, part: RenamedPart, ids: Ids, limit: int) -> RenamedPage | None:
    """Rename a page of a scope's rows; ``None`` if there is none left."""
    cursor = await connection.execute(part.statement, {**ids, "limit": limit})
    rows = await cursor.fetchall()
    if not rows:
        return None
    entries = [] if part.entries is None else part.entries(sorted(row["id"] for row in rows))
    number = sum(row["is_counted"] for row in rows)
    return RenamedPage(number, frozenset(row["namespace"] for row in rows), entries)


async def rename_settings(connection: Connection, ids: Ids) -> tuple[Mapping[str, int], set[str]]:
    """Rename a place in settings, shares and keys; return counts, and the workspaces that read by the shares."""
    counts: dict[str, int] = {}
    if ids["namespace"] is None:
        await connection.execute(QUERIES["rename_profiles_of_agents"], ids)
        await connection.execute(QUERIES["rename_settings"], ids)
        await connection.execute(QUERIES["keep_events_of_webhooks"], ids)
        counts["webhooks"] = (await connection.execute(QUERIES["rename_webhooks"], ids)).rowcount
    shares: list[DictRow] = await (await connection.execute(QUERIES["rename_shares"], ids)).fetchall()
    counts["shares"] = sum(row["is_counted"] for row in shares)
    counts["keys"] = (await connection.execute(QUERIES["rename_bounds_of_keys"], ids)).rowcount
    return counts, {row["to_workspace"] for row in shares}


async def lock_session(connection: Connection, ids: Ids) -> None:
    """Have turns in the session of the new name, if it is there, wait until the transaction ends."""
    await connection.execute(QUERIES["lock_session_row"], ids)


async def rename_session(connection: Connection, ids: Ids) -> tuple[Sequence[UUID], Sequence[UUID], int]:
    """Rename a session in all its rows; return ids of messages and of notes, and how many of these are live."""
    await connection.execute(QUERIES["drop_session_row"], ids)
    await connection.execute(QUERIES["rename_session_row"], ids)
    await connection.execute(QUERIES["lock_messages_of_session"], ids)
    messages = await (await connection.execute(QUERIES["rename_session_of_messages"], ids)).fetchall()
    notes = await (await connection.execute(QUERIES["rename_session_of_notes"], ids)).fetchall()
    await connection.execute(QUERIES["rename_session_of_archived_notes"], ids)
    await connection.execute(QUERIES["rename_session_of_turns"], ids)
    for row in await (await connection.execute(QUERIES["find_session_in_trash"], ids)).fetchall():
        rows = {
            table: [
                one | {"session_id": ids["to_session"]} if one.get("session_id") == ids["session_id"] else one
                for one in found
            ]
            for table, found in row["rows"].items()
        }
        await connection.execute(QUERIES["put_rows_in_trash"], {**ids, "id": row["id"], "rows": Json(rows)})
    live = sum(row["is_counted"] for row in notes)
    return [row["id"] for row in messages], [row["id"] for row in notes], live
