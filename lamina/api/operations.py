"""Operations over many memories: answers."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from lamina.api.fields import Output, PageOut
from lamina.core.operations import OperationKind, OperationState


class OperationOut(Output):
    """An operation over many memories."""

    id: UUID = Field(description="Of the operation; ask for it until it is complete.")
    kind: OperationKind = Field(description="What it does.")
    workspace: str | None = Field(description="Where; null for the whole tenant.")
    namespace: str | None = Field(description="Where in it; null for the whole workspace.")
    user: str | None = Field(description="Only memories of this person.")
    agent: str | None = Field(description="Only memories that this agent wrote.")
    session: str | None = Field(description="Only memories of this conversation.")
    request: dict[str, Any] = Field(description="What was ordered; without its conditions once it is complete.")
    state: OperationState = Field(description="running, complete, or failed: it was given up.")
    counts: dict[str, int] = Field(description="Memories so far, by what became of them.")
    waits_for: str | None = Field(
        description="Why its last batch failed; it is tried again by itself while it is running."
    )
    requested_at: datetime = Field(description="When it was ordered, UTC.")
    completed_at: datetime | None = Field(description="When it was complete, UTC.")
    receipt: dict[str, Any] | None = Field(
        None, description="Of a complete deletion of a scope: signed; `lamina receipts verify` checks it offline."
    )


class OperationsOut(PageOut):
    """Operations, the latest first."""

    operations: list[OperationOut] = Field(description="The latest first.")
