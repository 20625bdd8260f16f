"""Delete the messages, or the documents, that match a filter, each as a single call does."""

from collections.abc import Mapping
from functools import partial
from typing import Protocol
from uuid import UUID

from lamina.api.bulk import DocumentsDeleteIn, MessagesDeleteIn, SelectionIn
from lamina.core.operations import Operation, OperationKind
from lamina.core.ports import Clock
from lamina.core.queries import Filters
from lamina.core.scope import Scope
from lamina.core.trash import TrashKind
from lamina.errors import NotFound
from lamina.stores.postgres.bulk_memories import hold_selected, preview_selected, select_rows
from lamina.stores.postgres.connection import Before, Connection, Pool, in_transaction
from lamina.stores.postgres.operations import advance_operation, complete_operation, hold_operation

PAGE = 50
KINDS: Mapping[OperationKind, tuple[TrashKind, type[SelectionIn]]] = {
    OperationKind.DELETE_MESSAGES: (TrashKind.MESSAGE, MessagesDeleteIn),
    OperationKind.DELETE_DOCUMENTS: (TrashKind.DOCUMENT, DocumentsDeleteIn),
}
"""By operation, its memories and its request."""


class DeleteIf(Protocol):
    """Deletes a memory of a tenant unless something refuses it."""

    async def __call__(self, tenant: str, id_: UUID, /, *, before: Before, operation: UUID) -> None:
        """Delete it.

        Raises:
            NotFound: If there is none.
        """
        ...


class SelectedDeletion:
    """Works on deletions of messages and of documents.

    Args:
        pool: Connections to Postgres.
        deletes: By kind of the memories.
        clock: The time of day.
    """

    def __init__(self, pool: Pool, deletes: Mapping[TrashKind, DeleteIf], *, clock: Clock) -> None:
        self._pool = pool
        self._deletes = deletes
        self._clock = clock

    async def preview(self, kind: TrashKind, scope: Scope, filters: Filters, *, sample: int) -> tuple[int, list[UUID]]:
        """Return how many memories match, and the first of their ids."""
        matched, rows = await preview_selected(self._pool, kind, scope, filters, self._clock(), sample=sample)
        return matched, [row["id"] for row in rows]

    async def step(self, operation: Operation) -> None:
        """Delete a page of the memories that match; complete the operation if there is none.

        Raises:
            LaminaError: If that cannot be done now; what was done stays.
        """
        kind, request = KINDS[operation.kind]
        scope, filters = operation.scope(), request.model_validate(operation.request).selection()
        stored_by, after = operation.requested_at, operation.cursor
        rows = await select_rows(self._pool, kind, scope, filters, stored_by=stored_by, after=after, limit=PAGE)
        page = [row["id"] for row in rows]
        deleted = 0
        for id_ in page:
            deleted += await self._delete(operation, kind, scope, filters, id_)

        async def act(connection: Connection) -> None:
            if not await hold_operation(connection, operation):
                return  # It took so long that another process went on with it.
            if page:
                await advance_operation(connection, operation.id, page[-1], {"deleted": deleted} if deleted else {})
            else:
                await complete_operation(connection, operation, (), self._clock())

        await in_transaction(self._pool, act)

    async def _delete(self, operation: Operation, kind: TrashKind, scope: Scope, filters: Filters, id_: UUID) -> bool:
        hold = partial(hold_selected, kind=kind, scope=scope, filters=filters, id_=id_)
        try:
            await self._deletes[kind](operation.tenant, id_, before=hold, operation=operation.id)
        except NotFound:
            return False  # It matches no more, or somebody else deleted it.
        return True
