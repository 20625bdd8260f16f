"""Changes that jobs make: rows, what follows for their projections, the epoch, and the journal for the undo."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.scope import Scope
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.job_changes import Columns, Relation, RowChange, change_rows, record_changes
from lamina.stores.postgres.note_temperature import blank_words, restore_words
from lamina.stores.postgres.outbox import enqueue, enqueue_notes, enqueue_returned

# What no index holds.
_QUIET = frozenset({"weight", "hits", "last_hit_at", "temperature_changed_at"})


@dataclass(frozen=True, slots=True)
class Changes:
    """Makes changes within one transaction; :meth:`finish` is its last act.

    Args:
        connection: In the transaction.
        run: The run that may be undone; ``None`` while it is undone.
        moment: The time from which the run decides.
    """

    connection: Connection
    run: UUID | None
    moment: datetime
    _bumps: dict[Scope, bool] = field(default_factory=dict)

    async def notes(self, changes: Sequence[RowChange], *, tenant: str | None = None) -> list[UUID]:
        """Change notes; return the ids of those that were as expected, and therefore changed."""
        rows = await change_rows(self.connection, "notes", changes, tenant=tenant, run=self.run)
        loud = {change.id for change in changes if change.after.keys() - _QUIET}
        await self._warm_and_cool(rows)
        await enqueue_notes(self.connection, [row["id"] for row in rows if row["id"] in loud])
        turned = [row for row in rows if row["was_live"] != row["is_live"]]
        await enqueue(self.connection, "graph", [row["id"] for row in turned if not row["is_live"]])
        await enqueue_returned(self.connection, [row["id"] for row in turned if row["is_live"]])
        self._bump(rows, teaches=bool(turned))
        return [row["id"] for row in rows]

    async def _warm_and_cool(self, rows: Sequence[DictRow]) -> None:
        cooled = [row["id"] for row in rows if row["was"] == "warm" and row["temperature"] == "cold"]
        warmed = [row["id"] for row in rows if row["was"] == "cold" and row["temperature"] == "warm"]
        if cooled:
            await blank_words(self.connection, cooled)
        if warmed:
            await restore_words(self.connection, warmed)

    async def entities(self, changes: Sequence[RowChange], *, tenant: str | None = None) -> list[UUID]:
        """Change entities; return the ids of those that changed."""
        rows = await change_rows(self.connection, "entities", changes, tenant=tenant, run=self.run)
        self._bump(rows, teaches=False)
        return [row["id"] for row in rows]

    async def edges(self, changes: Sequence[RowChange], *, tenant: str | None = None) -> list[UUID]:
        """Change edges, and have the graph take over where they start; return the ids of those that changed."""
        rows = await change_rows(self.connection, "edges", changes, tenant=tenant, run=self.run)
        await enqueue(self.connection, "graph", sorted({row["from_id"] for row in rows}))
        self._bump(rows, teaches=False)
        return [row["id"] for row in rows]

    async def messages(self, changes: Sequence[RowChange], *, tenant: str | None = None) -> list[UUID]:
        """Take messages out of their sessions or put them back; return the ids of those that changed."""
        rows = await change_rows(self.connection, "messages", changes, tenant=tenant, run=self.run)
        ids = [row["id"] for row in rows]
        await enqueue(self.connection, "messages", ids)
        await enqueue(self.connection, "graph", ids)
        self._bump(rows, teaches=bool(ids))
        return ids

    async def record_changes(self, relation: Relation, before: Columns, after: Columns, ids: Sequence[UUID]) -> None:
        """Keep for the undo what another statement did to rows; new rows were, before, what they are after an undo."""
        if self.run is not None:
            await record_changes(self.connection, self.run, relation, before, after, ids)

    def bump(self, scope: Scope, *, teaches: bool = False) -> None:
        """Have the epoch of a scope raised at the end: its row is locked from then on, and no writer waits before."""
        place = Scope(scope.tenant, scope.workspace, scope.namespace)
        self._bumps[place] = teaches or self._bumps.get(place, False)

    async def finish(self) -> None:
        """Raise the epochs of what was changed."""
        for scope in sorted(self._bumps, key=lambda one: (one.tenant, one.workspace, one.namespace)):
            await bump_epoch(self.connection, scope, teaches=self._bumps[scope])

    def _bump(self, rows: Iterable[DictRow], *, teaches: bool) -> None:
        for scope in {(row["tenant"], row["workspace"], row["namespace"]) for row in rows}:
            self.bump(Scope(*scope), teaches=teaches)
