"""Row changes of jobs, in one transaction with the outbox, the epochs and the journal for the undo."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.events import Event, EventKind
from lamina.core.scope import Scope
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.events import record_events
from lamina.stores.postgres.job_changes import Columns, Relation, RowChange, change_rows, record_changes
from lamina.stores.postgres.note_temperature import blank_words, restore_words
from lamina.stores.postgres.outbox import enqueue, enqueue_notes, enqueue_returned

# No index holds these: a change of them alone needs no update of a projection.
_UNINDEXED = frozenset({"weight", "hits", "last_hit_at", "temperature_changed_at"})


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Changes rows within one transaction; :meth:`finish` comes last in it.

    Args:
        connection: In the transaction.
        run: The run that may be undone; ``None`` while it is undone.
        moment: The run's present, from which it decides.
    """

    connection: Connection
    run: UUID | None
    moment: datetime
    _bumps: dict[Scope, bool] = field(default_factory=dict)

    async def change(
        self, relation: Relation, changes: Sequence[RowChange], *, tenant: str | None = None
    ) -> list[UUID]:
        """Change rows of a relation; return the ids of those whose guard held, and which therefore changed."""
        rows = await change_rows(self.connection, relation, changes, tenant=tenant, run=self.run)
        ids, teaches = [row["id"] for row in rows], False
        match relation:
            case "notes":
                teaches = await self._project_notes(changes, rows)
            case "entities":
                pass
            case "edges":  # An edge stands at the entity that it starts from.
                await enqueue(self.connection, "graph", sorted({row["from_id"] for row in rows}))
            case "messages":
                await enqueue(self.connection, "messages", ids)
                await enqueue(self.connection, "graph", ids)
                teaches = bool(ids)
        for row in rows:
            self.bump(Scope(row["tenant"], row["workspace"], row["namespace"]), teaches=teaches)
        return ids

    async def _project_notes(self, changes: Sequence[RowChange], rows: Sequence[DictRow]) -> bool:
        """Have the projections take over changed notes; report whether one left the searches or came back."""
        cooled = [row["id"] for row in rows if row["was"] == "warm" and row["temperature"] == "cold"]
        warmed = [row["id"] for row in rows if row["was"] == "cold" and row["temperature"] == "warm"]
        if cooled:
            await blank_words(self.connection, cooled)
        if warmed:
            await restore_words(self.connection, warmed)
        indexed = {change.id for change in changes if change.after.keys() - _UNINDEXED}
        await enqueue_notes(self.connection, [row["id"] for row in rows if row["id"] in indexed])
        turned = [row for row in rows if row["was_live"] != row["is_live"]]
        await enqueue(self.connection, "graph", [row["id"] for row in turned if not row["is_live"]])
        await enqueue_returned(self.connection, [row["id"] for row in turned if row["is_live"]])
        return bool(turned)

    async def record_changes(self, relation: Relation, before: Columns, after: Columns, ids: Sequence[UUID]) -> None:
        """Journal a change of another statement for the undo; ``before`` of new rows is their state after an undo."""
        if self.run is not None:
            await record_changes(self.connection, self.run, relation, before, after, ids)

    def bump(self, scope: Scope, *, teaches: bool = False) -> None:
        """Mark the epoch of a scope to be raised by :meth:`finish`."""
        shared = Scope(scope.tenant, scope.workspace, scope.namespace)
        self._bumps[shared] = teaches or self._bumps.get(shared, False)

    async def finish(self) -> None:
        """Raise the epochs of the changed scopes: last, since it locks their rows, and all writers wait for those."""
        # In one order everywhere: two transactions that raise the same epochs would deadlock otherwise.
        scopes = sorted(self._bumps, key=lambda one: (one.tenant, one.workspace, one.namespace))
        for scope in scopes:
            await bump_epoch(self.connection, scope, teaches=self._bumps[scope])
        run = () if self.run is None else (self.run,)
        await record_events(self.connection, [Event.of(scope, EventKind.JOB_CHANGED, *run) for scope in scopes])
