"""Rename a session, a namespace or a workspace, and everything that knows it by its name."""

from collections.abc import Mapping
from uuid import UUID

import psycopg

from lamina.core.events import Event, EventKind
from lamina.core.operations import Operation
from lamina.core.ports import Clock
from lamina.core.scope import Scope
from lamina.errors import Conflict, NotFound
from lamina.stores.postgres.connection import Connection, Pool, connect, in_transaction
from lamina.stores.postgres.epochs import bump_epoch, bump_workspace_epochs
from lamina.stores.postgres.events import record_events
from lamina.stores.postgres.operations import advance_operation, complete_operation, hold_operation
from lamina.stores.postgres.outbox import enqueue_entries, note_entries, outbox_entries
from lamina.stores.postgres.renaming import (
    PARTS,
    Ids,
    clear_place,
    close_places,
    count_besides,
    find_contents,
    find_halted,
    find_later,
    has_archived_notes,
    has_keys_that_gain,
    keep_former_names,
    lock_page,
    lock_renamings,
    lock_session,
    open_places,
    refuse_rivals,
    rename_page,
    rename_session,
    rename_settings,
)
from lamina.stores.postgres.scope_contents import ScopeContents

PAGE = 200
ROUNDS = 2
"""All parts are looked through twice: a write may have begun before it was known that it had to wait."""
_PART = 64
"""Bits of an operation's cursor below the number of the part that it is at."""

_TAKEN_MEANWHILE = "the session's new name was taken meanwhile"


class ScopeRenaming:
    """Works on renamings of scopes.

    A session is renamed in one transaction. A namespace or a workspace is renamed in pages, and each is where a search
    finds it at every moment: under the old name or under the new one. Writes in either place wait until the end.

    Args:
        pool: Connections to Postgres.
        clock: The time of day.
    """

    def __init__(self, pool: Pool, *, clock: Clock) -> None:
        self._pool = pool
        self._contents = ScopeContents(pool)
        self._clock = clock

    async def count(self, ids: Ids) -> Mapping[str, int]:
        """Count everything that would be touched, by kind, up to a number of each.

        Raises:
            NotFound: If there is nothing under the name.
            Conflict: If the new name is taken or keys are bound to it, or notes of the scope are archived.
        """
        async with connect(self._pool) as connection:
            await _check(connection, ids, await find_halted(connection, ids))
        counts = await self._contents.count({name: ids[name] for name in _SCOPE})
        if ids["session_id"] is not None:
            return {name: counts[name] for name in ("notes", "messages")}
        return {**counts, **await count_besides(self._pool, ids)}

    async def open(self, connection: Connection, ids: Ids, operation: UUID, *, undoes: Operation | None = None) -> None:
        """Check a renaming that is ordered, in the transaction of its order, and close the places to writes.

        Args:
            connection: In the transaction of the order.
            ids: The two names.
            operation: Id of the renaming.
            undoes: The renaming that it undoes, if it does.

        Raises:
            NotFound: If there is nothing under the name.
            Conflict: If the new name is taken or keys are bound to it, another operation works there, notes of the
                scope are archived, or the renaming that it undoes was not the last one of these names.
        """
        await lock_renamings(connection, ids)
        halted = await find_halted(connection, ids)
        await refuse_rivals(connection, ids, operation, halted)
        if undoes is not None:
            later = await find_later(connection, ids, undoes.id, undoes.requested_at, operation)
            if later is not None:
                raise Conflict(
                    f"the operation {later} renamed it since then; undo that one, or rename the scope by name"
                )
        if ids["session_id"] is None:
            # Before the check, which so sees also what writes put there that had begun.
            await close_places(connection, ids, operation)
        await _check(connection, ids, halted, undoes)
        if ids["session_id"] is None and halted is None:
            # Sessions of a halted renaming may have their messages under the other name.
            await clear_place(connection, ids)

    async def step(self, operation: Operation) -> None:
        """Rename a page, or complete the operation, in one transaction.

        Raises:
            Conflict: If the new name of a session was taken meanwhile.
            Unavailable: If Postgres does not answer; the page is not renamed.
        """
        ids = renaming_ids(operation)
        work = self._pages if operation.session is None else self._session

        async def act(connection: Connection) -> None:
            if await hold_operation(connection, operation):
                await work(connection, operation, ids)

        try:
            await in_transaction(self._pool, act)
        except psycopg.errors.UniqueViolation as error:
            if operation.session is None:
                raise  # The places stay closed, and the step is tried again.
            raise Conflict(_TAKEN_MEANWHILE) from error

    async def _pages(self, connection: Connection, operation: Operation, ids: Ids) -> None:
        number = 0 if operation.cursor is None else operation.cursor.int
        for place in range(number >> _PART, ROUNDS * len(PARTS)):
            part = PARTS[place % len(PARTS)]
            page_ids = {**ids, "ids": await lock_page(connection, part, ids, PAGE)}
            if place % len(PARTS) == 0:
                # Before they move: the entries of cold notes say where they were.
                await enqueue_entries(connection, note_entries(page_ids["ids"]))
            page = await rename_page(connection, part, page_ids, PAGE)
            if page is None:
                continue
            step = (number & ((1 << _PART) - 1)) + 1
            counts = {} if part.counted_as is None else {part.counted_as: page.number}
            await advance_operation(connection, operation.id, UUID(int=(place << _PART) + step), counts)
            await enqueue_entries(connection, page.entries)
            await self._bump(connection, operation, ids, page.namespaces)
            return
        await self._finish(connection, operation, ids)

    async def _bump(self, connection: Connection, operation: Operation, ids: Ids, namespaces: frozenset[str]) -> None:
        before = {(ids["workspace"], ids["namespace"] or namespace) for namespace in namespaces}
        after = {(ids["to_workspace"], namespace) for namespace in namespaces}
        for workspace, namespace in sorted(before | after):
            place = Scope(operation.tenant, workspace, namespace)
            await bump_epoch(connection, place, teaches=True, renaming=operation.id)

    async def _finish(self, connection: Connection, operation: Operation, ids: Ids) -> None:
        counts, readers = await rename_settings(connection, ids)
        named = {name: count for name, count in counts.items() if count}
        cursor = UUID(int=(ROUNDS * len(PARTS)) << _PART)
        await advance_operation(connection, operation.id, cursor, named)
        await complete_operation(connection, operation, tuple(operation.request), self._clock())
        await keep_former_names(connection, ids)
        await open_places(connection, ids, operation.id)
        for workspace in sorted({ids["workspace"], ids["to_workspace"], *readers}):
            await bump_workspace_epochs(connection, operation.tenant, workspace, by_renaming=True)
        places = {
            "to": (ids["workspace"], ids["namespace"]),
            "from": (ids["to_workspace"], ids["to_namespace"]),
        }
        (here, there), tenant, kind = places.values(), operation.tenant, EventKind.SCOPE_RENAMED
        events = [
            Event(kind, tenant, *here, facts={"to_workspace": there[0], "to_namespace": there[1]}),
            Event(kind, tenant, *there, facts={"from_workspace": here[0], "from_namespace": here[1]}),
        ]
        await record_events(connection, events)

    async def _session(self, connection: Connection, operation: Operation, ids: Ids) -> None:
        await lock_session(connection, ids)
        if await find_contents(connection, {**ids, "session_id": ids["to_session"]}):
            raise Conflict(_TAKEN_MEANWHILE)
        messages, notes, live = await rename_session(connection, ids)
        counts = {"messages": len(messages), "notes": live}
        cursor = UUID(int=1 << _PART)
        await advance_operation(
            connection, operation.id, cursor, {name: count for name, count in counts.items() if count}
        )
        await complete_operation(connection, operation, tuple(operation.request), self._clock())
        await enqueue_entries(connection, [*outbox_entries("messages", messages), *note_entries(notes)])
        place = operation.scope().narrowed(user=None, agent=None, session=None)
        await bump_epoch(connection, place, teaches=True)
        # Without the names, which may be a user's, and which an erasure would not find here.
        await record_events(connection, [Event.of(place, EventKind.SCOPE_RENAMED, **counts)])


_SCOPE = ("tenant", "workspace", "namespace", "session_id")


def renaming_ids(operation: Operation) -> dict[str, str | None]:
    """Return the ids of a renaming's two scopes, as its statements take them."""
    return {
        "tenant": operation.tenant,
        "workspace": operation.workspace,
        "namespace": operation.namespace,
        "session_id": operation.session,
        "to_workspace": operation.request["to_workspace"],
        "to_namespace": operation.request["to_namespace"],
        "to_session": operation.request["to_session"],
    }


def reversed_ids(ids: Ids) -> dict[str, str | None]:
    """Return the ids of the renaming that undoes another one."""
    pairs = (("workspace", "to_workspace"), ("namespace", "to_namespace"), ("session_id", "to_session"))
    turned = {to: ids[at] for at, to in pairs} | {at: ids[to] for at, to in pairs}
    return {**ids, **turned}


async def _check(connection: Connection, ids: Ids, halted: UUID | None, undoes: Operation | None = None) -> None:
    """Check that there is something under the old name, and nothing and no key's bounds under the new one."""
    source = {name: ids[name] for name in _SCOPE}
    target = {
        "tenant": ids["tenant"],
        "workspace": ids["to_workspace"],
        "namespace": ids["to_namespace"],
        "session_id": ids["to_session"],
    }
    narrowest = next(name for name in ("session_id", "namespace", "workspace") if ids[name] is not None)
    kind = narrowest.removesuffix("_id")
    if await has_archived_notes(connection, source):
        # For a session, those of its namespace that an earlier release archived: their files alone say their sessions.
        raise Conflict("notes of the scope are archived, in files that say where; restore them, then rename it")
    if halted is not None:
        return  # It goes on, or back: both names have a part.
    if not await find_contents(connection, source):
        raise NotFound(kind, str(source[narrowest]))
    if taken := await find_contents(connection, target):
        there = f"there is a {kind} {target[narrowest]} already, with {', '.join(taken)}"
        raise Conflict(f"{there}; name another, or delete what lies there")
    undone_at = None if undoes is None else undoes.requested_at
    if ids["session_id"] is None and await has_keys_that_gain(connection, ids, undone_at):
        raise Conflict(f"keys are bound to a {kind} {target[narrowest]}; revoke them, or name another")
