"""Operations over many memories: ordered at once, worked on in batches, followed by id."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from lamina.core.erasures import Remnant
from lamina.core.scope import Scope

RECEIPT_FORMAT = "lamina-deletion-receipt/1"


class OperationKind(StrEnum):
    """What an operation does."""

    CHANGE_NOTES = "change_notes"
    MOVE_NOTES = "move_notes"
    DELETE_NOTES = "delete_notes"
    DELETE_MESSAGES = "delete_messages"
    CHANGE_DOCUMENTS = "change_documents"
    MOVE_DOCUMENTS = "move_documents"
    DELETE_DOCUMENTS = "delete_documents"
    DELETE_SCOPE = "delete_scope"
    RESTORE_SCOPE = "restore_scope"
    RENAME_SCOPE = "rename_scope"


class OperationState(StrEnum):
    """State of an operation."""

    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation over many memories.

    Args:
        kind: What it does.
        workspace: The memories that it may touch belong to exactly these ids; one that is missing does not narrow it.
        request: What was ordered, as JSON; without the conditions once it is complete, for these may name users.
        cursor: Id of the last memory that a batch looked at.
        counts: Number of memories, by what became of them.
        waits_for: Why its last batch failed; it is tried again unless the operation failed with it.
        receipt: The signed receipt of a complete deletion of a scope.
    """

    id: UUID
    tenant: str
    kind: OperationKind
    workspace: str | None
    namespace: str | None
    user: str | None
    agent: str | None
    session: str | None
    request: Mapping[str, Any]
    state: OperationState
    requested_at: datetime
    cursor: UUID | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    waits_for: str | None = None
    completed_at: datetime | None = None
    receipt: Mapping[str, Any] | None = None

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do."""
        return self.state is not OperationState.RUNNING

    def scope(self) -> Scope:
        """Return the scope of an operation in one namespace.

        Raises:
            ValueError: If it is in more than one.
        """
        if self.workspace is None or self.namespace is None:
            raise ValueError("is in no single namespace")
        return Scope(self.tenant, self.workspace, self.namespace, self.user, self.agent, self.session)


def deletion_receipt(
    operation: Operation,
    left: Mapping[str, int],
    remnants: tuple[Remnant, ...],
    completed_at: datetime,
    *,
    most: int,
) -> dict[str, Any]:
    """Return the contents of the receipt of a deletion of a scope, as JSON.

    Args:
        operation: The deletion.
        left: Memories in the scope at its end, by kind: those that came after the order.
        remnants: Places that may hold something for some time, the trash among them.
        completed_at: When it ended.
        most: How far the memories that are left are counted; there may be more of a kind that has so many.
    """
    return {
        "format": RECEIPT_FORMAT,
        "id": str(operation.id),
        "tenant": operation.tenant,
        "scope": {"workspace": operation.workspace, "namespace": operation.namespace, "session": operation.session},
        "requested_at": operation.requested_at.isoformat(),
        "completed_at": completed_at.isoformat(),
        "deleted": dict(operation.counts),
        "left": dict(left),
        "at_least": sorted(kind for kind, count in left.items() if count >= most),
        "remains": [remnant.as_json() for remnant in remnants],
    }
