"""The trash: memories that a call deleted, for as long as they can be brought back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class TrashKind(StrEnum):
    """The kind of a deleted memory."""

    NOTE = "note"
    MESSAGE = "message"
    PROCEDURE = "procedure"
    DOCUMENT = "document"
    ENTITY = "entity"
    FACT = "fact"


@dataclass(frozen=True, slots=True)
class Discarded:
    """A deleted memory.

    Args:
        id: Of the memory.
        title: How its text begins, or the title of a document; ``None`` of what an earlier release deleted, and of an
            entity or a fact that several users know of, each by private memories.
        rows: By table, of those that are in no table any more.
    """

    id: UUID
    kind: TrashKind
    workspace: str
    namespace: str
    user: str | None
    agent: str | None
    deleted_at: datetime
    title: str | None = None
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict, repr=False)
