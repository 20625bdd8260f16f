"""Events: which memories changed, where and by whom; never their contents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from lamina.core.scope import Scope

# Longer lists of ids are stored as several events.
IDS_OF_EVENT = 100

Fact = str | int | float | bool | None


class EventKind(StrEnum):
    """The kind of an event: a thing and a verb."""

    TURN_RECORDED = "turn.recorded"
    MESSAGE_CHANGED = "message.changed"
    MESSAGE_DELETED = "message.deleted"
    MESSAGE_RESTORED = "message.restored"
    NOTE_CREATED = "note.created"
    NOTE_CHANGED = "note.changed"
    NOTE_DELETED = "note.deleted"
    NOTE_RESTORED = "note.restored"
    NOTE_PROMOTED = "note.promoted"
    PROFILE_CHANGED = "profile.changed"
    GRAPH_WRITTEN = "graph.written"
    ENTITY_DELETED = "entity.deleted"
    ENTITY_RESTORED = "entity.restored"
    EDGE_DELETED = "edge.deleted"
    EDGE_RESTORED = "edge.restored"
    PROCEDURE_CREATED = "procedure.created"
    PROCEDURE_CHANGED = "procedure.changed"
    PROCEDURE_DELETED = "procedure.deleted"
    PROCEDURE_RESTORED = "procedure.restored"
    PROCEDURE_OUTCOME = "procedure.outcome"
    DOCUMENT_WRITTEN = "document.written"
    DOCUMENT_DELETED = "document.deleted"
    DOCUMENT_RESTORED = "document.restored"
    SHARE_CREATED = "share.created"
    SHARE_REVOKED = "share.revoked"
    MEMORY_PROFILE_CHANGED = "memory_profile.changed"
    JOB_CHANGED = "job.changed"
    JOB_FINISHED = "job.finished"
    SCOPE_RENAMED = "scope.renamed"
    USER_ERASED = "user.erased"
    AGENT_METRICS = "agent.metrics"


@dataclass(frozen=True, slots=True)
class Event:
    """A change of memories.

    Args:
        kind: What happened, as :class:`EventKind` names it; another text in an event of a newer release.
        tenant: Whose memories.
        workspace: Where; ``None`` for a change of the whole tenant.
        namespace: Where in it; ``None`` for one of the whole workspace.
        user: Whose memories they are; an erasure of the user takes this name and all ids out of the event.
        agent: Who made the change.
        session: The session of a turn.
        ids: Of what changed: of messages for ``message.…`` and ``turn.recorded``, of notes for ``note.…`` and so on.
        facts: Small facts, such as counts and versions; never contents, and nothing that names a user.
    """

    kind: str
    tenant: str
    workspace: str | None = None
    namespace: str | None = None
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    ids: tuple[UUID, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @classmethod
    def of(cls, scope: Scope, kind: EventKind, *ids: UUID, **facts: Fact) -> Self:
        """Make an event of a scope."""
        return cls(
            kind,
            scope.tenant,
            scope.workspace,
            scope.namespace,
            scope.user,
            scope.agent,
            scope.session,
            ids,
            facts,
        )


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event that was committed.

    Args:
        id: Of version 7; a reader goes on after it.
        position: Its place among all events: in a workspace, a change that began after another was committed has a
            higher one, and so have changes of a namespace in the order of their epochs.
        at: When it was recorded.
        event: The change.
    """

    id: UUID
    position: int
    at: datetime
    event: Event


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events of a tenant a reader wants, or may see.

    Args:
        workspace: Only this one's.
        namespace: Only this one's.
        user: Only those of this user and of none.
        agent: Only what this agent changed.
        kinds: Only these; all if empty.
    """

    workspace: str | None = None
    namespace: str | None = None
    user: str | None = None
    agent: str | None = None
    kinds: frozenset[str] = frozenset()

    def admits(self, event: Event) -> bool:
        """Report whether the event is wanted."""
        return (
            self.workspace in {None, event.workspace}
            and self.namespace in {None, event.namespace}
            and (self.user is None or event.user in {None, self.user})
            and self.agent in {None, event.agent}
            and (not self.kinds or event.kind in self.kinds)
        )


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in their order.

    Args:
        events: The events.
        until: The position up to which there is none but these.
        is_full: Whether more may follow at once.
    """

    events: tuple[StoredEvent, ...]
    until: int
    is_full: bool
