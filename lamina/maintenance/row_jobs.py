"""The jobs sweep, decay, entities and edges, which decide row by row, in the order of ids."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.runs import RunCounts
from lamina.maintenance.job import Page, PageCursor
from lamina.maintenance.row_writer import RowWriter
from lamina.policies.ranking.feedback import balance
from lamina.policies.retention.decay import edge_strength_share, entity_confidence_share, note_weight
from lamina.policies.retention.lifespan import is_warm, lifespan
from lamina.stores.postgres.aging import Candidates, read_candidates
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.job_changes import RowChange

Decide = Callable[[Sequence[DictRow], datetime], list[RowChange]]
Rows = Literal["notes", "entities", "edges"]


@dataclass(frozen=True, slots=True)
class RowPolicy:
    """The decision of one of these jobs.

    Args:
        rows: The relation that it changes.
        candidates: The rows that may be due.
        decide: Returns the changes, which are few: most rows stay as they are.
        idle: Time since their last hit from which warm notes may be due.
    """

    rows: Rows
    candidates: Candidates
    decide: Decide
    idle: timedelta = timedelta(0)


class RowJob:
    """Applies a policy to all rows of a scope.

    Args:
        pool: Connections to Postgres.
        policy: The decision.
        page_rows: Most rows of a page.
    """

    def __init__(self, pool: Pool, policy: RowPolicy, *, page_rows: int) -> None:
        self._pool = pool
        self._policy = policy
        self._page_rows = page_rows

    async def decide(self, area: Area, after: PageCursor, moment: datetime) -> Page[list[RowChange]]:
        """Read one page and decide."""
        rows = await read_candidates(
            self._pool,
            self._policy.candidates,
            area,
            moment=moment,
            idle=self._policy.idle,
            after=None if after is None else after["id"],
            limit=self._page_rows,
        )
        changes = self._policy.decide(rows, moment)
        is_last = len(rows) < self._page_rows
        next_after = None if is_last else {"id": str(rows[-1]["id"])}
        return Page(changes or None, next_after, seen=len(rows), planned=len(changes))

    async def act(self, writer: RowWriter, area: Area, plan: list[RowChange]) -> RunCounts:
        """Change the rows that are still as they were."""
        changed = set(await writer.change(self._policy.rows, plan, tenant=area.tenant))
        removed = sum(one.id in changed and "deleted_at" in one.after for one in plan)
        return RunCounts(changed=len(changed), removed=removed)


def _sweep(rows: Sequence[DictRow], moment: datetime, *, days_per_doubling: float) -> list[RowChange]:
    states: dict[str, dict[str, Any]] = {
        "idle": {"temperature": "cold", "temperature_changed_at": moment},
        "expired": {"deleted_at": moment},
    }
    return [
        RowChange(
            row["id"],
            states[reason],
            {"temperature": row["temperature"], "hits": row["hits"], "last_hit_at": row["last_hit_at"]},
        )
        for row in rows
        if (reason := _reason_to_sweep(row, moment, days_per_doubling)) is not None
    ]


def _reason_to_sweep(row: DictRow, moment: datetime, days: float) -> Literal["idle", "expired"] | None:
    if row["expires_at"] is not None and row["expires_at"] <= moment:
        return "expired"
    is_idle = row["temperature"] == "warm" and not is_warm(row["hits"], row["last_hit_at"], moment, days)
    return "idle" if is_idle else None


def _fade_notes(rows: Sequence[DictRow], moment: datetime) -> list[RowChange]:
    # By whole days: a second run on the same day changes nothing.
    weights = (
        (row, note_weight(timedelta(days=(moment - row["last_hit_at"]).days), balance(row["useful"], row["wrong"])))
        for row in rows
    )
    return [
        RowChange(row["id"], {"weight": weight}, {"last_hit_at": row["last_hit_at"], "weight": row["weight"]})
        for row, weight in weights
        if weight != row["weight"]
    ]


def _set_standings(shares: Iterable[tuple[DictRow, float]]) -> list[RowChange]:
    return [
        RowChange(row["id"], {"standing": share}, {"standing": row["standing"], "last_seen_at": row["last_seen_at"]})
        for row, share in shares
        if share != row["standing"]
    ]


def sweep_of(days_per_doubling: float) -> RowPolicy:
    """Return the policy by which notes past their lifespan go cold, and expired ones are deleted.

    Args:
        days_per_doubling: Of a note's lifespan, see :mod:`lamina.policies.retention.lifespan`.
    """
    decide = partial(_sweep, days_per_doubling=days_per_doubling)
    return RowPolicy("notes", "idle_notes", decide, idle=lifespan(1, days_per_doubling))


# Idle notes lose weight, and with it their place in contexts; see policies.retention.decay.
DECAY = RowPolicy("notes", "fading_notes", _fade_notes)
# Entities lose confidence while nothing mentions them, and have it back with the next mention.
ENTITIES = RowPolicy(
    "entities",
    "fading_entities",
    lambda rows, moment: _set_standings(
        (row, entity_confidence_share(moment - row["last_seen_at"], row["sources"])) for row in rows
    ),
)
# Edges lose strength by their half-life, and are not followed once little is left; none is deleted.
EDGES = RowPolicy(
    "edges",
    "fading_edges",
    lambda rows, moment: _set_standings((row, edge_strength_share(moment - row["last_seen_at"])) for row in rows),
)
