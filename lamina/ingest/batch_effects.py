"""The effects of a batch of an operation over many memories."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from lamina.core.events import Event
from lamina.core.operations import Operation
from lamina.core.scope import Scope
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.events import record_events
from lamina.stores.postgres.operations import advance_operation
from lamina.stores.postgres.outbox import OutboxEntry, enqueue_entries


@dataclass
class BatchEffects:
    """The effects of a batch, which are written at its end.

    Args:
        counts: Memories, by what became of them.
        entries: What projections take over.
        events: What is told of the batch.
        places: The namespaces that changed, as workspace and namespace.
    """

    counts: dict[str, int] = field(default_factory=dict)
    entries: list[OutboxEntry] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    places: set[tuple[str, str]] = field(default_factory=set)

    def count(self, name: str, number: int = 1) -> None:
        """Count memories."""
        if number:
            self.counts[name] = self.counts.get(name, 0) + number

    def touch(self, *places: Scope) -> None:
        """Add the namespaces of scopes to those that changed."""
        self.places |= {(place.workspace, place.namespace) for place in places}

    async def write(self, connection: Connection, operation: Operation, cursor: UUID) -> None:
        """Write them, and advance the operation to the last memory of the batch."""
        await advance_operation(connection, operation.id, cursor, self.counts)
        await enqueue_entries(connection, self.entries)
        for workspace, namespace in sorted(self.places):
            await bump_epoch(connection, Scope(operation.tenant, workspace, namespace), teaches=True)
        await record_events(connection, self.events)


def ids_by_user(owned: Iterable[tuple[UUID, str | None]]) -> Mapping[str | None, list[UUID]]:
    """Group memories by the users that they belong to."""
    found: dict[str | None, list[UUID]] = {}
    for id_, user in owned:
        found.setdefault(user, []).append(id_)
    return found
