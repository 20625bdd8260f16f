"""Jobs that decide row by row: a page of a scope's rows in the order of their ids, each by itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.runs import Counts
from lamina.maintenance.changes import Changes
from lamina.maintenance.pages import After, Page
from lamina.policies.retention.decay import edge_strength_share, entity_confidence_share, note_weight
from lamina.policies.retention.lifespan import is_warm
from lamina.stores.postgres.aging import Candidates, read_candidates
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.job_changes import RowChange

Decide = Callable[[Sequence[DictRow], datetime], list[RowChange]]
Rows = Literal["notes", "entities", "edges"]


@dataclass(frozen=True, slots=True)
class RowPolicy:
    """A job that decides row by row.

    Args:
        rows: Whose rows it changes.
        candidates: Rows that may be due.
        decide: Returns what becomes of them; of most, nothing.
    """

    rows: Rows
    candidates: Candidates
    decide: Decide


class RowJob:
    """Applies a policy to all rows of a scope.

    Args:
        pool: Connections to Postgres.
        policy: What it decides.
        page_rows: Most rows of a page.
    """

    def __init__(self, pool: Pool, policy: RowPolicy, *, page_rows: int) -> None:
        self._pool = pool
        self._policy = policy
        self._page_rows = page_rows

    async def decide(self, area: Area, after: After, moment: datetime) -> Page[list[RowChange]]:
        """Read one page and decide."""
        rows = await read_candidates(
            self._pool,
            self._policy.candidates,
            area,
            moment=moment,
            after=None if after is None else after["id"],
            limit=self._page_rows,
        )
        changes = self._policy.decide(rows, moment)
        is_last = len(rows) < self._page_rows
        next_after = None if is_last else {"id": str(rows[-1]["id"])}
        return Page(changes or None, next_after, seen=len(rows), planned=len(changes))

    async def act(self, changes: Changes, area: Area, plan: list[RowChange]) -> Counts:
        """Change the rows that still are as they were."""
        change = {"notes": changes.notes, "entities": changes.entities, "edges": changes.edges}[self._policy.rows]
        changed = set(await change(plan, tenant=area.tenant))
        removed = sum(one.id in changed and "deleted_at" in one.after for one in plan)
        return Counts(changed=len(changed), removed=removed)

    async def size(self, area: Area) -> int:  # noqa: ARG002 - nothing is removed
        """Return 0: nothing is removed."""
        return 0


def _swept(rows: Sequence[DictRow], moment: datetime) -> list[RowChange]:
    after: dict[str, dict[str, Any]] = {
        "idle": {"temperature": "cold", "temperature_changed_at": moment},
        "expired": {"deleted_at": moment},
    }
    states = ((row, _state(row, moment)) for row in rows)
    return [
        RowChange(
            row["id"],
            after[state],
            {"temperature": row["temperature"], "hits": row["hits"], "last_hit_at": row["last_hit_at"]},
        )
        for row, state in states
        if state is not None
    ]


def _state(row: DictRow, moment: datetime) -> Literal["idle", "expired"] | None:
    """Return why a note may not stay where it is: it is warm without being so any more, or it has expired."""
    if row["expires_at"] is not None and row["expires_at"] <= moment:
        return "expired"
    is_idle = row["temperature"] == "warm" and not is_warm(row["hits"], row["last_hit_at"], moment)
    return "idle" if is_idle else None


def _faded(rows: Sequence[DictRow], moment: datetime) -> list[RowChange]:
    # By whole days: a second run on the same day changes nothing.
    weights = ((row, note_weight(timedelta(days=(moment - row["last_hit_at"]).days))) for row in rows)
    return [
        RowChange(row["id"], {"weight": weight}, {"last_hit_at": row["last_hit_at"], "weight": row["weight"]})
        for row, weight in weights
        if weight != row["weight"]
    ]


def _doubted(rows: Sequence[DictRow], moment: datetime) -> list[RowChange]:
    standings = ((row, entity_confidence_share(moment - row["last_seen_at"], row["sources"])) for row in rows)
    return _stood(list(standings))


def _weakened(rows: Sequence[DictRow], moment: datetime) -> list[RowChange]:
    return _stood([(row, edge_strength_share(moment - row["last_seen_at"])) for row in rows])


def _stood(found: Sequence[tuple[DictRow, float]]) -> list[RowChange]:
    return [
        RowChange(row["id"], {"standing": standing}, {"standing": row["standing"], "last_seen_at": row["last_seen_at"]})
        for row, standing in found
        if standing != row["standing"]
    ]


SWEEP = RowPolicy("notes", "idle_notes", _swept)
"""Notes past their lifespan go cold (see policies.retention.lifespan); what has expired goes."""
DECAY = RowPolicy("notes", "fading_notes", _faded)
"""Notes that nobody finds lose their weight, and with it their place in contexts; see policies.retention.decay."""
ENTITIES = RowPolicy("entities", "fading_entities", _doubted)
"""Entities that nobody tells of lose confidence, and have it back when somebody does."""
EDGES = RowPolicy("edges", "fading_edges", _weakened)
"""Edges lose strength by their half-life, and count for nothing when little is left; none is deleted."""
