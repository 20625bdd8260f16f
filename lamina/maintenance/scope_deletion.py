"""Delete all memories of a session, a namespace, a workspace or a tenant, each as a single call does, and undo it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from lamina.core.erasures import Remnant
from lamina.core.operations import Operation, OperationKind, deletion_receipt
from lamina.core.ports import Clock
from lamina.core.trash import TrashKind
from lamina.errors import Conflict, NotFound
from lamina.ingest.restoring import Restorer
from lamina.maintenance.erasures import BY_NATURE, Seal
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.erasures import ErasureTable
from lamina.stores.postgres.operations import advance_operation, complete_operation, hold_operation
from lamina.stores.postgres.scope_contents import MOST_COUNTED, ScopeContents
from lamina.stores.postgres.trash import TrashPolicy

PAGE = 50
KEPT = {
    "expired_notes": Remnant("postgres: notes", "notes whose time is over", "when the sweep deletes them"),
    "archived_notes": Remnant(
        "the archive", "archived notes", "when they are restored and deleted, or their users erased"
    ),
    "agent_turns": Remnant(
        "postgres: agent_turns",
        "usage, tools and outcomes of turns",
        "when their time is over, or their users are erased",
    ),
    "profiles": Remnant("postgres: profiles", "profiles of users", "when they are deleted, or their users erased"),
    "entities": Remnant("postgres: entities", "entities of the graph, and facts about them", "when they are deleted"),
}
"""Rows of a scope that its deletion leaves there, by kind."""


class Delete(Protocol):
    """Deletes a memory of a tenant, for a deletion of a scope."""

    async def __call__(self, tenant: str, id_: UUID, /, *, operation: UUID | None = None) -> None:
        """Delete it.

        Raises:
            NotFound: If there is none.
        """
        ...


class ScopeDeletion:
    """Works on deletions of scopes, and on their undoing.

    Args:
        pool: Connections to Postgres.
        deletes: By kind of the memories.
        restorer: Brings them back.
        seal: Signs the receipts of deletions.
        trash: How long they can be brought back.
        clock: The time of day.
    """

    def __init__(
        self,
        pool: Pool,
        deletes: Mapping[TrashKind, Delete],
        restorer: Restorer,
        *,
        seal: Seal,
        trash: TrashPolicy,
        clock: Clock,
    ) -> None:
        self._pool = pool
        self._contents = ScopeContents(pool)
        self._deletes = deletes
        self._restorer = restorer
        self._keys = ErasureTable(pool)
        self._seal = seal
        self._trash = trash
        self._clock = clock

    async def count(self, ids: Mapping[str, str | None]) -> Mapping[str, int]:
        """Count the memories that would go, by kind, up to a number of each."""
        return await self._contents.count(ids)

    async def step(self, operation: Operation) -> None:
        """Delete a page of the scope's memories, or bring a page back; complete the operation if there is none.

        Raises:
            LaminaError: If that cannot be done now; what was done stays.
        """
        work = self._restore if operation.kind is OperationKind.RESTORE_SCOPE else self._delete
        done, now = await work(operation), self._clock()
        is_deleted = done is None and operation.kind is OperationKind.DELETE_SCOPE
        receipt = await self._receipt(operation, now) if is_deleted else None

        async def act(connection: Connection) -> None:
            if not await hold_operation(connection, operation):
                return  # It took so long that another process went on with it.
            if done is None:
                await complete_operation(connection, operation, tuple(operation.request), now, receipt)
            else:
                cursor, counts = done
                await advance_operation(connection, operation.id, cursor, counts)

        await in_transaction(self._pool, act)

    async def _receipt(self, operation: Operation, now: datetime) -> Mapping[str, Any]:
        left = await self._contents.count(scope_ids(operation))
        kept = tuple(KEPT[kind] for kind in await self._contents.kept(scope_ids(operation)))
        trash = Remnant(
            "postgres: trash", "the deleted memories, which can be brought back", "when their time there is over"
        )
        remnants = (replace(trash, until=now + self._trash.kept),) if self._trash.keeps else ()
        receipt, key, pem = await self._seal(
            deletion_receipt(operation, left, (*remnants, *kept, *BY_NATURE), now, most=MOST_COUNTED)
        )
        # First the key: a receipt that nobody can check is none.
        await self._keys.put_key(key, pem)
        return receipt

    async def _delete(self, operation: Operation) -> tuple[UUID, Mapping[str, int]] | None:
        page = await self._contents.page(
            scope_ids(operation), stored_by=operation.requested_at, after=operation.cursor, limit=PAGE
        )
        counts: dict[str, int] = {}
        for kind, id_ in page:
            try:
                await self._deletes[kind](operation.tenant, id_, operation=operation.id)
            except NotFound:
                continue  # It went with one before, or by somebody else.
            counts[f"{kind}s"] = counts.get(f"{kind}s", 0) + 1
        return (page[-1][1], counts) if page else None

    async def _restore(self, operation: Operation) -> tuple[UUID, Mapping[str, int]] | None:
        deletion = UUID(operation.request["operation"])
        page = await self._contents.discarded(operation.tenant, deletion, after=operation.cursor, limit=PAGE)
        counts: dict[str, int] = {}
        for id_ in page:
            try:
                entry = await self._restorer.restore(operation.tenant, id_, may_wait=True)
                name = f"{entry.kind}s"
            except NotFound:
                continue  # It came back with one before, or by somebody else.
            except Conflict:
                name = "left"
            counts[name] = counts.get(name, 0) + 1
        return (page[-1], counts) if page else None


def scope_ids(operation: Operation) -> dict[str, str | None]:
    """Return the ids of an operation's scope, as its statements take them."""
    return {
        "tenant": operation.tenant,
        "workspace": operation.workspace,
        "namespace": operation.namespace,
        "session_id": operation.session,
    }
