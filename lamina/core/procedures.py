"""Procedures as values: actions for situations, and the outcomes of taking them."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from lamina.core.memories import MAX_SOURCE_CHARS, Metadata, MetadataLimit, clean_metadata, clean_tags
from lamina.text.hygiene import clean, clean_id, clean_text
from lamina.text.words import content_hash

MAX_TRIGGER_CHARS = 10_000
MAX_ACTION_CHARS = 100_000
MAX_COMMENT_CHARS = 10_000


class ProcedureState(StrEnum):
    """State of a procedure; only active ones are found by searches and matches."""

    PROPOSED = "proposed"
    ACTIVE = "active"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Procedure:
    """An action for a situation.

    Args:
        trigger: The situation, as it is met or asked about.
        action: The steps to take then.
        tags: Free labels, compared whole.
        metadata: The caller's data, returned untouched.
        source: Where it comes from.
    """

    trigger: str
    action: str
    tags: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    source: str = "api"

    def text(self) -> str:
        """Return it as a prompt shows it."""
        return f"When: {self.trigger}\nDo: {self.action}"

    def content_hash(self) -> bytes:
        """Return the hash under which a scope holds this trigger with this action once."""
        return hashlib.sha256(content_hash(self.trigger) + content_hash(self.action)).digest()


def clean_procedure(procedure: Procedure, field_path: str = "", *, limit: MetadataLimit | None = None) -> Procedure:
    """Return the procedure with clean text and distinct tags.

    Args:
        procedure: The procedure.
        field_path: Where it stands in what was sent.
        limit: Of its metadata.

    Raises:
        InvalidInput: Naming the field under ``field_path``.
    """
    prefix = f"{field_path}." if field_path else ""
    return Procedure(
        trigger=clean_text(procedure.trigger, f"{prefix}trigger", limit=MAX_TRIGGER_CHARS),
        action=clean_text(procedure.action, f"{prefix}action", limit=MAX_ACTION_CHARS),
        tags=clean_tags(procedure.tags, f"{prefix}tags"),
        metadata=clean_metadata(procedure.metadata, f"{prefix}metadata", limit),
        source=clean(procedure.source, f"{prefix}source", limit=MAX_SOURCE_CHARS),
    )


@dataclass(frozen=True, slots=True)
class StoredProcedure:
    """A procedure as Postgres holds it.

    Args:
        agent: Who wrote it.
        strength: 0..1, by its outcomes.
        last_used_at: When an outcome was last reported, in UTC.
        is_learnt: Whether runs of agents proposed it.
        is_private: Whether one user's runs alone taught it, so that searches for that user alone find it.
    """

    id: UUID
    procedure: Procedure
    agent: str | None
    workspace: str
    namespace: str
    strength: float
    successes: int
    failures: int
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None
    state: ProcedureState = ProcedureState.ACTIVE
    is_learnt: bool = False
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class ProcedureOutcome:
    """The result of following a procedure.

    Args:
        succeeded: Whether it worked.
        run: The caller's own id of the run; a run counts once. Without it, each report counts.
        comment: Remarks of the caller.
    """

    succeeded: bool
    run: str | None = None
    comment: str | None = None


def clean_outcome(outcome: ProcedureOutcome) -> ProcedureOutcome:
    """Return the outcome with clean text.

    Raises:
        InvalidInput: Naming the field.
    """
    return ProcedureOutcome(
        succeeded=outcome.succeeded,
        run=None if outcome.run is None else clean_id(outcome.run, "run"),
        comment=None if outcome.comment is None else clean(outcome.comment, "comment", limit=MAX_COMMENT_CHARS),
    )
