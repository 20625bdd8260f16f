"""Rows that time may have changed: idle and expired notes, fading notes, entities and edges."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_rows

QUERIES = load_queries("aging.sql")

Candidates = Literal["idle_notes", "fading_notes", "fading_entities", "fading_edges"]
_CANDIDATES: Mapping[Candidates, bytes] = {
    "idle_notes": QUERIES["idle_notes"],
    "fading_notes": QUERIES["fading_notes"],
    "fading_entities": QUERIES["fading_entities"],
    "fading_edges": QUERIES["fading_edges"],
}


async def read_candidates(
    pool: Pool, candidates: Candidates, area: Area, *, moment: datetime, idle: timedelta, after: str | None, limit: int
) -> list[DictRow]:
    """Return a page of a namespace's rows that may be due, by id: ``id`` and the columns that the decision needs.

    Args:
        pool: Connections to Postgres.
        candidates: Which rows.
        area: A namespace.
        moment: The time of day.
        idle: Time since their last hit from which warm notes may be due.
        after: Only rows with a greater id.
        limit: Most rows.
    """
    parameters = area.ids() | {"after": after, "limit": limit, "moment": moment, "idle": idle}
    return await fetch_rows(pool, _CANDIDATES[candidates], parameters)
