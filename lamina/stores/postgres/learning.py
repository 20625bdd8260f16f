"""Runs of agents that are to teach procedures, and those that did."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pgvector import Vector
from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.policies.retention.learning import MOST_NEAR, LearntProcedure, TaughtRun
from lamina.stores.postgres.connection import Connection, Pool, connect
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_rows

QUERIES = load_queries("learning.sql")


async def find_runs(pool: Pool, area: Area, *, after: Mapping[str, Any] | None, limit: int) -> list[DictRow]:
    """Return a page of a namespace's runs that have ended and were not learnt from, the earliest first."""
    place = after or {"at": None, "id": None}
    start = {"after_at": place["at"], "after_id": place["id"]}
    return await fetch_rows(pool, QUERIES["find_untaught_runs"], area.ids() | start | {"limit": limit})


async def find_learnt(
    pool: Pool, area: Area, runs: Sequence[TaughtRun], *, generation: int, min_similarity: float
) -> Mapping[UUID, Sequence[LearntProcedure]]:
    """Return the learnt procedures near each run, by its id, the nearest first."""
    parameters = area.ids() | {
        "ids": [run.id for run in runs],
        "embeddings": [Vector(run.embedding) for run in runs],
        "generation": generation,
        "min_similarity": min_similarity,
        "most": MOST_NEAR,
    }
    found: dict[UUID, list[LearntProcedure]] = defaultdict(list)
    async with connect(pool) as connection:
        async for row in await connection.execute(QUERIES["find_learnt"], parameters):
            steps = tuple(row["metadata"].get("learnt", {}).get("steps", ()))
            near = LearntProcedure(row["id"], row["user_id"], row["trigger"], steps, row["similarity"])
            found[row["run_id"]].append(near)
    return found


async def lock_runs(connection: Connection, ids: Sequence[UUID]) -> set[UUID]:
    """Lock runs that are still to be learnt from, until the transaction ends; return their ids."""
    return {row["id"] async for row in await connection.execute(QUERIES["lock_runs"], {"ids": list(ids)})}


async def find_live(connection: Connection, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of the procedures that are not deleted."""
    return {row["id"] async for row in await connection.execute(QUERIES["find_live_procedures"], {"ids": list(ids)})}


async def mark_learnt(connection: Connection, taught: Mapping[UUID, UUID | None], now: datetime) -> None:
    """Mark runs as learnt from, each with the procedure that it is evidence for."""
    parameters = {"ids": list(taught), "procedures": list(taught.values()), "now": now}
    await connection.execute(QUERIES["mark_learnt"], parameters)
